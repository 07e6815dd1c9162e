package identity

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/exact"
)

// Check reads what a token says of itself: it must be that of the user, and last
// until the given instant. What is no JWT is for the target to judge.
func Check(u drive.Identity, until time.Time) error {
	parts := strings.Split(u.Token, ".")
	if len(parts) != 3 {
		return nil
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil //nolint:nilerr // no JWT
	}
	claims, err := exact.Parse(payload)
	if err != nil {
		return nil //nolint:nilerr // no JWT
	}
	if sub := claims.Text("sub"); sub != "" && sub != u.User {
		return fmt.Errorf("the token of %s is that of %q", u.User, sub)
	}
	var seconds *json.Number
	if claims.Read("exp", &seconds) != nil || seconds == nil {
		return nil //nolint:nilerr // it has no end that is one
	}
	exp, err := seconds.Float64()
	if err == nil && exp < float64(until.Unix()) {
		return fmt.Errorf("the token of %s ends at %s, and the run needs it until %s",
			u.User, time.Unix(int64(exp), 0).UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339))
	}
	return nil
}
