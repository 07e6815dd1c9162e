//go:build linux

package chaos

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// TestAFullLogDiskIsUnknownAndThenTrue: a COMMIT that waits for room in the
// binary log is not answered, may still be carried out, and is not denied
// meanwhile. The server looks for room once a minute.
func TestAFullLogDiskIsUnknownAndThenTrue(t *testing.T) {
	t.Parallel()
	if *runFor < shortest {
		t.Skip("it takes more than a minute: make chaos and make chaos-short run it")
	}
	for _, engine := range []string{"MySQL", "MariaDB"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, engine, gatewayProgram(t, ""))
			makeRoom, err := w.fullLogDisk()
			testserver.Demand(t, err)
			who := w.people[0]
			const body = `{"sku":"tea","quantity":2,"amount":"39.80"}`
			w.eventually(func() error { // on a busy machine the time may be over before the COMMIT
				a, err := w.sites[0].order(who.Token, "k", body)
				require.NoError(t, err, "everybody is answered in time")
				require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
				if !strings.Contains(a.body, `"outcome":"unknown"`) {
					return errors.New(a.body)
				}
				return nil
			})
			makeRoom()
			var last answer
			w.within(2*time.Minute, func() error {
				last, err = w.sites[1].order(who.Token, "k", body)
				if err == nil && last.status != http.StatusCreated {
					err = errors.New(last.body)
				}
				return err
			})
			require.Equal(t, last.body, w.sites[2].insist(who.Token, "k", body).body)
			require.Equal(t, 1, number(t, w.admin, "SELECT COUNT(*) FROM orders WHERE user_id = ?", who.User))
			w.requireConserved()
			w.requireNoMarks()
			w.requireNothingLeft()
		})
	}
}
