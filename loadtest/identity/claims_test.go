package identity

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/drive"
)

// A token that ends in the middle of a run, or is somebody else's, makes findings that
// are no fault of the target.
func TestTokensOfAFileMustFitTheRun(t *testing.T) {
	t.Parallel()
	until := time.Unix(1_800_000_000, 0)
	token := func(claims string) string { return "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s" }
	for name, tc := range map[string]struct{ token, want string }{
		"long enough":        {token(`{"sub":"ann","exp":1800000000}`), ""},
		"half a second more": {token(`{"sub":"ann","exp":1800000000.5}`), ""},
		"too short":          {token(`{"sub":"ann","exp":1799999999}`), "ann ends at 2027-01-15T07:59:59Z, and the run needs it until 2027-01-15T08:00:00Z"},
		"for ever":           {token(`{"sub":"ann"}`), ""},
		"another's":          {token(`{"sub":"bob","exp":1800000000}`), `is that of "bob"`},
		"of nobody":          {token(`{"exp":1800000000}`), ""},
		"an odd end":         {token(`{"sub":"ann","exp":"soon"}`), ""},
		"no object":          {token(`[]`), ""},
		"no base64":          {"a.!.c", ""},
		"no JWT":             {"secret", ""},
	} {
		err := Check(drive.Identity{User: "ann", Token: tc.token}, until)
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.want, name)
	}
	i := &Issuer{Scope: "orders", Lifetime: time.Hour}
	require.NoError(t, i.UseSecret([]byte("secret")))
	own, err := i.Token("ann", "orders", until.Add(-time.Hour))
	require.NoError(t, err)
	require.NoError(t, Check(drive.Identity{User: "ann", Token: own}, until))
	require.Error(t, Check(drive.Identity{User: "ann", Token: own}, until.Add(time.Second)))
}
