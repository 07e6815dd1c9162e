package store

import (
	"context"
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
		h := openHarness(t, Options{DSN: dsn, Workers: 1, LockWaitTimeout: 30 * time.Second, ReadTimeout: 40 * time.Second, WaitTimeout: time.Minute})
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

func requireAllPlaces(t *testing.T, h *harness) {
	t.Helper()
	require.Empty(t, h.places.free)
	require.Empty(t, h.places.turns)
}

// A user whose row is held waits for it by one transaction, whatever they ask for
// and however often; a payment of somebody else's order comes in between.
func TestAHeldRowTakesOnePlace(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn, Workers: 1, LockWaitTimeout: 30 * time.Second, ReadTimeout: 40 * time.Second, WaitTimeout: time.Minute})
		anns := placed(t, h, "ann", potsticker(1_00))
		theirs := placed(t, h, "held", potsticker(1_00))
		onRawSession(t, dsn, func(db *sql.DB) {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = tx.ExecContext(t.Context(), "SELECT user_id FROM users WHERE user_id = 'held' FOR UPDATE")
			require.NoError(t, err)
			var others sync.WaitGroup
			for range 2 * besideLedger {
				others.Go(func() {
					if _, err := h.Cancel(t.Context(), "held", theirs); err != nil {
						t.Errorf("cancel: %v", err)
					}
				})
				others.Go(func() {
					if _, err := h.Confirm(t.Context(), "held", "k"); err != nil {
						t.Errorf("confirm: %v", err)
					}
				})
			}
			require.Eventually(t, func() bool { return h.places.waiting(userRow("held")) == 4*besideLedger }, ample, time.Millisecond)
			result, err := h.Cancel(t.Context(), "ann", anns)
			require.NoError(t, err)
			require.Equal(t, order.Applied, result.Effect)
			require.NoError(t, tx.Rollback())
			others.Wait()
		})
		requireAllPlaces(t, h)
	})
}

// Nor does a held SKU take more, whoever wants to give some of it back.
func TestHeldStockTakesOnePlace(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn, Workers: 1, LockWaitTimeout: 30 * time.Second, ReadTimeout: 40 * time.Second, WaitTimeout: time.Minute})
		require.NoError(t, h.SetStock(t.Context(), "tea", 100))
		anns := placed(t, h, "ann", potsticker(1_00))
		const users = 2 * besideLedger
		var theirs [users]order.ID
		for i := range theirs {
			theirs[i] = placed(t, h, fmt.Sprint("held-", i), order.Line{SKU: "tea", Quantity: 1, Amount: 1_00})
		}
		onRawSession(t, dsn, func(db *sql.DB) {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = tx.ExecContext(t.Context(), "SELECT sku FROM stock WHERE sku = 'tea' FOR UPDATE")
			require.NoError(t, err)
			var others sync.WaitGroup
			for i := range theirs {
				others.Go(func() {
					if _, err := h.Cancel(t.Context(), fmt.Sprint("held-", i), theirs[i]); err != nil {
						t.Errorf("cancel: %v", err)
					}
				})
			}
			require.Eventually(t, func() bool { return h.places.waiting(stockRow("tea")) == users }, ample, time.Millisecond)
			result, err := h.Cancel(t.Context(), "ann", anns)
			require.NoError(t, err)
			require.Equal(t, order.Applied, result.Effect)
			require.NoError(t, tx.Rollback())
			others.Wait()
		})
		available, _, err := h.Stock(t.Context(), "tea")
		require.NoError(t, err)
		require.EqualValues(t, 100, available)
		requireAllPlaces(t, h)
	})
}

// Who gives up leaves nothing behind.
func TestAPlaceIsWaitedForUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	p := newPlaces()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	leave, err := p.take(t.Context(), userRow("ann"))
	require.NoError(t, err)
	_, err = p.take(gone, userRow("ann"))
	require.ErrorIs(t, err, context.Canceled)
	var all []func()
	for range besideLedger - 1 {
		leave, err := p.take(t.Context())
		require.NoError(t, err)
		all = append(all, leave)
	}
	_, err = p.take(gone, userRow("bob"))
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, p.waiting(userRow("bob")))
	require.Equal(t, 1, p.waiting(userRow("ann")))
	for _, leave := range append(all, leave) {
		leave()
	}
	require.Empty(t, p.free)
	require.Empty(t, p.turns)
}

// waiting is how many have the turn of a row or wait for it.
func (p *places) waiting(row lockedRow) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.turns[row]; t != nil {
		return t.known
	}
	return 0
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
