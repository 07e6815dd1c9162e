package store

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

// However many ask for other things, and however long they wait for a row.
func TestWorkersNeverWaitForASession(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, patientLocks(dsn))
		account(t, h, "ann", 30_00)
		var locked [besideLedger]string
		for i := range locked {
			locked[i] = fmt.Sprint("locked-", i)
			account(t, h, locked[i], 30_00)
		}
		onRawSession(t, dsn, func(db *sql.DB) {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = tx.ExecContext(t.Context(), "SELECT user_id FROM users WHERE user_id LIKE 'locked-%' FOR UPDATE")
			require.NoError(t, err)
			var others sync.WaitGroup
			for i := range 3 * besideLedger {
				others.Go(func() {
					if _, err := h.Confirm(t.Context(), locked[i%besideLedger], "k"); !errors.Is(err, order.ErrNotFound) {
						t.Errorf("confirm: %v", err)
					}
				})
			}
			require.Eventually(t, func() bool { return h.writes.Stats().InUse == besideLedger }, ample, time.Millisecond)
			require.Equal(t, "created", kinds(submit(t, h, command(t, "ann", "k", potsticker(1_00)))()))
			require.NoError(t, tx.Rollback())
			others.Wait()
		})
		requireAllPlaces(t, h)
	})
}

// A server that is short of something is not at fault for good, and neither is
// the request.
func TestAServerThatIsShortOfSomethingIsAskedAgain(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn, patient)
		for _, code := range []uint16{
			1021, 1037, 1040, 1041, 1114, 1135, 1203, 1226, // disk, memory, connections, table space, threads, connections of the user
			1317, 1969, 3024, // a statement that was interrupted, or took too long
			1129, 1206, 1412, 1637, // a host that is blocked, locks, a table that changed, writers
			2003, 3032, 3168, // a router without a server, a server that is offline or not available
		} {
			short := faultproxy.AnswerError{Code: code, Message: "something is short"}
			key := fmt.Sprint(code)
			proxy.OnQuery(first("SELECT user_id, balance", short))
			require.Equal(t, "created", kinds(submit(t, h, command(t, "ann", key, potsticker(1)))()), code)
			proxy.OnQuery(first("SELECT user_id, idempotency_key", short))
			_, err := h.Find(t.Context(), "ann", order.Key(key))
			require.ErrorIs(t, err, order.ErrUnavailable, code)
		}
	})
}
