package store

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

// What an attempt has done whose COMMIT was not answered is its caller's own, and
// not somebody else's that was there before.
func TestWhatAnUnansweredCommitDidIsItsCallersOwn(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn, patient)
		kept, cancelled := placed(t, h, "bob", potsticker(19_90)), placed(t, h, "cid", potsticker(19_90))
		lost := func() { proxy.OnQuery(first("COMMIT", faultproxy.Swallow)) }

		dear := command(t, "ann", "dear", potsticker(101_00))
		lost()
		refused := submit(t, h, dear)()
		require.Equal(t, "rejected", kinds(refused))
		require.Equal(t, &order.Rejection{Code: order.InsufficientBalance}, refused[0].decision.Rejection)
		again := submit(t, h, dear)()
		require.Equal(t, "replayed", kinds(again))
		require.Nil(t, again[0].decision.Rejection)
		require.Equal(t, refused[0].decision.Receipt, again[0].decision.Receipt)

		lost()
		result, err := h.Cancel(t.Context(), "cid", cancelled)
		require.NoError(t, err)
		require.Equal(t, order.Applied, result.Effect)
		require.Equal(t, order.Cancelled, result.Order.Status)

		for _, m := range []order.PaymentMessage{paid(kept, "m-1", "r-1", 19_90), paid(cancelled, "m-2", "r-2", 19_90)} {
			lost()
			result, err = h.Apply(t.Context(), m)
			require.NoError(t, err)
			require.False(t, result.Duplicate)
			require.Equal(t, m.OrderID == cancelled, result.RefundOwed)
			result, err = h.Apply(t.Context(), m)
			require.NoError(t, err)
			require.True(t, result.Duplicate)
		}

		lost()
		result, err = h.Ship(t.Context(), kept)
		require.NoError(t, err)
		require.Equal(t, order.Applied, result.Effect)
		for id, want := range map[order.ID]int{kept: 2, cancelled: 2} {
			n, err := h.count(t.Context(), "SELECT COUNT(*) FROM order_events WHERE order_id = ?", id[:])
			require.NoError(t, err)
			require.Equal(t, want, n, "each has one event")
		}
	})
}

// A COMMIT is lost, and before the next attempt another gateway refuses the same:
// that refusal is the other's.
func TestARefusalByAnotherGatewayIsReplayed(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn, patient)
		other := openHarness(t, Options{DSN: dsn})
		dear := command(t, "ann", "dear", potsticker(101_00))
		theirs := make(chan result, 1)
		var lost atomic.Bool
		var meanwhile sync.Once // whoever asks next waits for it
		proxy.OnQuery(func(q string) faultproxy.Action {
			switch {
			case q == commitText && !lost.Swap(true):
				return faultproxy.CutBefore
			case lost.Load() && strings.HasPrefix(q, "SELECT user_id, balance"):
				meanwhile.Do(func() {
					ctx, cancel := context.WithTimeout(context.Background(), ample)
					defer cancel()
					d, err := other.Decide(ctx, dear)
					theirs <- result{d, err}
				})
			}
			return faultproxy.Pass
		})
		require.Equal(t, "replayed", kinds(submit(t, h, dear)()))
		require.Equal(t, "rejected", kinds([]result{<-theirs}))
	})
}

// During a failover a session may still be with the old server, while others have
// been with the new one: what it reads is the old one's.
func TestAReceiptNamesTheServerThatItWasReadFrom(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		account(t, h, "ann", 30_00)
		made := submit(t, h, command(t, "ann", "k", potsticker(1_00)))()
		require.Equal(t, "created", kinds(made))
		for _, find := range map[string]func() (order.Receipt, error){
			"find":    func() (order.Receipt, error) { return h.Find(t.Context(), "ann", "k") },
			"confirm": func() (order.Receipt, error) { return h.Confirm(t.Context(), "ann", "k") },
		} {
			h.identity.Store(uint64(made[0].decision.Receipt.Server) + 1)
			r, err := find()
			require.NoError(t, err)
			require.Equal(t, made[0].decision.Receipt, r)
		}
		require.Eventually(t, func() bool { return h.Identity() == made[0].decision.Receipt.Server }, ample, 10*time.Millisecond)
	})
}

// Only what was refused counts: an outage says nothing of a request that was
// accepted.
func TestOutagesDoNotWearADeferredRequestOut(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		account(t, h, "ann", 100_00)
		c := batchOf(t, "ann", "k", 2, 1_00)
		_, err := h.Accept(t.Context(), c)
		require.NoError(t, err)
		free := func() {
			_, err := h.reads.ExecContext(t.Context(), "UPDATE deferred_requests SET lease_until = created_at")
			require.NoError(t, err)
		}
		o := DeferredOptions{Lease: time.Minute, MaxAttempts: 3}
		for range 2 * o.MaxAttempts { // its workers died, or met an outage
			job, err := h.lease(t.Context(), o.Lease)
			require.NoError(t, err)
			require.NotNil(t, job)
			free()
		}
		_, err = h.reads.ExecContext(t.Context(), "ALTER TABLE orders ADD CONSTRAINT ck_refuse CHECK (quantity > 1)")
		require.NoError(t, err)
		for range o.MaxAttempts - 1 {
			_, err = h.carryOutNext(t.Context(), o)
			require.ErrorIs(t, err, order.ErrInternal)
			free()
		}
		drop := "ALTER TABLE orders DROP CONSTRAINT ck_refuse"
		_, err = h.reads.ExecContext(t.Context(), drop)
		require.NoError(t, err)
		_, err = h.carryOutNext(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, "replayed", kinds(submit(t, h, c)()))
		r, err := h.Find(t.Context(), "ann", "k")
		require.NoError(t, err)
		require.Equal(t, order.Succeeded, r.State)
	})
}
