package loadtest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/exact"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/wire"
)

// UsedError says that the deployment has orders or keys of a run with this name. They
// would be taken for second orders, and their answers for replays of nothing.
type UsedError struct{ Run, User string }

func (e *UsedError) Error() string {
	return fmt.Sprintf("a run %s was there before: %s has orders of it; a run needs a name of its own (--run)", e.Run, e.User)
}

// looks is how many users, and how many keys, are asked for earlier orders over HTTP.
const looks = 32

// look asks some users for their orders, and what became of the first keys, before a
// run that could not be told from an earlier one.
func (r *run) look(ctx context.Context) error {
	// All looks together have the time of one request: a target that is slow is for
	// the run to show.
	looking, stop := context.WithTimeout(ctx, r.Timeout)
	defer stop()
	for i := range r.Users[:min(len(r.Users), looks)] { // the first users are those who send most
		if answered, err := r.welcome(ctx, &r.Users[i]); err != nil || !answered || looking.Err() != nil {
			return err
		}
	}
	if r.OwnUsers {
		return nil // they would have been that run's, and had its orders
	}
	source := scenario.NewSource(r.Scenario, r.Run, r.Seed, len(r.Users))
	for n := range uint64(looks) {
		if answered, err := r.fresh(ctx, source.Intent(n)); err != nil || !answered || looking.Err() != nil {
			return err
		}
	}
	return nil
}

// welcome asks for a user's orders: the target must let it, users of this run alone
// must have none, and others none with a business number of this run. A target that
// does not answer is for the run to show.
func (r *run) welcome(ctx context.Context, who *drive.Identity) (answered bool, err error) {
	x := r.client.Do(ctx, &wire.Request{Method: http.MethodGet, Path: "/api/orders?limit=100", Fields: bearer(who.Token)}, 0)
	switch x.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return true, &RefusedError{"the target refuses the token of " + who.User, x.Status, excerpt(x.Body)}
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return true, &RefusedError{"the target takes no orders: GET /api/orders", x.Status, excerpt(x.Body)}
	}
	page, malformed := exact.Parse(x.Body)
	var rows []exact.Object
	if x.Status != http.StatusOK || malformed != nil || page.Read("orders", &rows) != nil {
		return x.Err == nil, nil //nolint:nilerr // for the run to show
	}
	for _, row := range rows {
		if r.OwnUsers || strings.HasPrefix(row.Text("external_order_no"), scenario.NumberPrefix(r.Run)) {
			return true, &UsedError{r.Run, who.User}
		}
	}
	return true, nil
}

// fresh asks what became of a key that is still to be sent: the target must not know
// of it. A seed and a name that were there before make the same keys again.
func (r *run) fresh(ctx context.Context, it *scenario.Intent) (answered bool, err error) {
	who := &r.Users[it.User]
	x := r.client.Do(ctx, &wire.Request{Method: http.MethodGet, Path: "/api/requests/" + url.PathEscape(it.Key), Fields: bearer(who.Token)}, 0)
	if o, err := exact.Parse(x.Body); x.Status == http.StatusOK && err == nil && o.Text("state") != "" {
		return true, &UsedError{r.Run, who.User}
	}
	return x.Err == nil, nil
}
