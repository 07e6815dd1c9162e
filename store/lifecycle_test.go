package store

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

// placed commits one order of 19.90 for a fresh user with a balance of 100.
func placed(t *testing.T, h *harness, user string, line order.Line) order.ID {
	t.Helper()
	account(t, h, user, 100_00)
	require.Equal(t, "created", kinds(submit(t, h, command(t, user, "k", line))()))
	orders, err := h.Orders(t.Context(), user, order.ID{}, 10)
	require.NoError(t, err)
	require.Len(t, orders, 1)
	return orders[0].ID
}

func paid(id order.ID, message, reference string, amount order.Amount) order.PaymentMessage {
	m := order.PaymentMessage{
		Consumer: "webhook", MessageID: message, Type: order.EventPaymentSucceeded,
		OrderID: id, Amount: amount, ProviderReference: reference, Body: []byte("{}"),
	}
	m.Digest = sha256.Sum256(fmt.Append(nil, m.Type, id, amount, reference))
	return m
}

func TestCancelGivesBackOnce(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		require.NoError(t, h.SetStock(t.Context(), "limited", 10))
		id := placed(t, h, "ann", order.Line{SKU: "limited", Quantity: 3, Amount: 19_90})
		effects := make(chan order.Effect, 8)
		var wg sync.WaitGroup
		for range cap(effects) {
			wg.Go(func() {
				tr, err := h.Cancel(t.Context(), "ann", id)
				if err == nil {
					effects <- tr.Effect
				}
			})
		}
		wg.Wait()
		close(effects)
		count := map[order.Effect]int{}
		for e := range effects {
			count[e]++
		}
		require.Equal(t, map[order.Effect]int{order.Applied: 1, order.AlreadyThere: 7}, count)
		balance, err := h.Balance(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, order.Amount(100_00), balance)
		available, _, err := h.Stock(t.Context(), "limited")
		require.NoError(t, err)
		require.EqualValues(t, 10, available)
		_, err = h.Cancel(t.Context(), "bob", id)
		require.ErrorIs(t, err, order.ErrNotFound)
	})
}

// Who tries somebody else's order must not learn from a wait that there is one, nor
// keep its owner waiting.
func TestSomebodyElsesOrderIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		id := placed(t, h, "ann", potsticker(19_90))
		account(t, h, "eve", 100_00)
		release := holdRow(t, dsn, "SELECT order_id FROM orders WHERE order_id = ? FOR UPDATE", id[:])
		defer release()
		for _, tried := range []order.ID{id, order.NewID(time.Now())} {
			_, err := h.Cancel(t.Context(), "eve", tried)
			require.ErrorIs(t, err, order.ErrNotFound)
		}
	})
}

func TestPaymentEventsHaveOneEffect(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		id := placed(t, h, "ann", potsticker(19_90))
		other := placed(t, h, "bob", potsticker(19_90))
		cancelled := placed(t, h, "cid", potsticker(19_90))
		_, err := h.Cancel(t.Context(), "cid", cancelled)
		require.NoError(t, err)
		missing := order.NewID(time.Now())

		apply := func(m order.PaymentMessage, want order.Effect, duplicate, refund bool) {
			t.Helper()
			tr, err := h.Apply(t.Context(), m)
			require.NoError(t, err)
			require.Equal(t, want, tr.Effect)
			require.Equal(t, duplicate, tr.Duplicate)
			require.Equal(t, refund, tr.RefundOwed)
		}
		_, err = h.Apply(t.Context(), paid(missing, "m0", "r0", 19_90))
		require.ErrorIs(t, err, order.ErrNotFound)
		n, err := h.count(t.Context(), "SELECT COUNT(*) FROM consumed_messages WHERE message_id = 'm0'")
		require.NoError(t, err)
		require.Zero(t, n, "nothing that would swallow the retry")

		apply(paid(id, "m1", "r1", 19_89), order.WrongAmount, false, true)
		apply(paid(id, "m2", "r2", 19_90), order.Applied, false, false)
		apply(paid(id, "m2", "r2", 19_90), order.Applied, true, false)
		apply(paid(id, "m2", "r2", 19_91), order.Parked, false, false)
		apply(paid(id, "m2", "r2", 19_91), order.Parked, false, false)
		apply(paid(id, "m3", "r2", 19_90), order.AlreadyThere, false, false)
		apply(paid(id, "m4", "r4", 19_90), order.AlreadyThere, false, true)
		apply(paid(other, "m5", "r2", 19_90), order.Impossible, false, false)
		apply(paid(cancelled, "m6", "r6", 19_90), order.Impossible, false, true)
		tr, err := h.Ship(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, order.Applied, tr.Effect)
		require.Equal(t, order.Shipped, tr.Order.Status)
		apply(paid(id, "m7", "r2", 19_90), order.Stale, false, false)
		n, err = h.count(t.Context(), "SELECT COUNT(*) FROM parked_messages")
		require.NoError(t, err)
		require.Equal(t, 1, n)
		o, err := h.Order(t.Context(), "bob", other)
		require.NoError(t, err)
		require.Equal(t, order.Pending, o.Status)
	})
}

// Whatever the order of arrival, duplicated and on four threads: an order ends
// in the same state for the same set of events, money is conserved, and no
// state is ever left for an earlier one.
func TestEventsInAnyOrderEndAlike(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		for round := range 12 {
			user := fmt.Sprintf("user-%d", round)
			id := placed(t, h, user, potsticker(19_90))
			steps := []func() error{
				func() error { _, err := h.Apply(t.Context(), paid(id, user+"-a", user+"-r", 19_90)); return err },
				func() error { _, err := h.Apply(t.Context(), paid(id, user+"-b", user+"-r", 19_90)); return err },
				func() error {
					m := paid(id, user+"-c", user+"-r", 19_90)
					m.Type = order.EventPaymentFailed
					_, err := h.Apply(t.Context(), m)
					return err
				},
				func() error { _, err := h.Ship(t.Context(), id); return err },
			}
			if round%2 == 0 {
				steps = append(steps, func() error { _, err := h.Cancel(t.Context(), user, id); return err })
			}
			steps = append(steps, steps...)
			rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
			work := make(chan func() error, len(steps))
			for _, s := range steps {
				work <- s
			}
			close(work)
			var wg sync.WaitGroup
			errs := make(chan error, len(steps))
			for range 4 {
				wg.Go(func() {
					for s := range work {
						errs <- s()
					}
				})
			}
			wg.Wait()
			close(errs)
			for err := range errs {
				require.NoError(t, err)
			}
			o, err := h.Order(t.Context(), user, id)
			require.NoError(t, err)
			balance, err := h.Balance(t.Context(), user)
			require.NoError(t, err)
			applied, err := h.count(t.Context(), "SELECT COUNT(*) FROM order_events WHERE effect = 'applied' AND order_id = ?", id[:])
			require.NoError(t, err)
			switch o.Status {
			case order.Cancelled:
				require.Equal(t, order.Amount(100_00), balance)
				require.Equal(t, 1, applied)
			case order.Paid:
				require.Equal(t, order.Amount(80_10), balance)
				require.Equal(t, 1, applied)
			case order.Shipped:
				require.Equal(t, order.Amount(80_10), balance)
				require.Equal(t, 2, applied)
			default:
				t.Fatalf("the order is %s", o.Status)
			}
		}
	})
}

func TestBalanceCanBeFilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		for i := range 3 {
			account(t, h, "ann", order.MaxBalance)
			require.Equal(t, "created", kinds(submit(t, h, command(t, "ann", fmt.Sprint(i), potsticker(order.MaxAmount)))()))
		}
		report, err := h.Audit(t.Context(), AuditOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
	})
}

// Who writes to a log what a change came to must not write of one that may not be.
func TestAChangeThatFailedCameToNothingKnown(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn)
		id := placed(t, h, "ann", potsticker(10_00))
		gone := placed(t, h, "bob", potsticker(10_00))
		_, err := h.Cancel(t.Context(), "bob", gone)
		require.NoError(t, err)
		proxy.OnQuery(func(q string) faultproxy.Action {
			if strings.HasPrefix(q, "COMMIT") {
				return faultproxy.CutBefore
			}
			return faultproxy.Pass
		})
		for what, change := range map[string]func() (order.Transition, error){
			"cancel": func() (order.Transition, error) { return h.Cancel(t.Context(), "ann", id) },
			"ship":   func() (order.Transition, error) { return h.Ship(t.Context(), id) },
			"refund": func() (order.Transition, error) { return h.Apply(t.Context(), paid(gone, "m", "r", 10_00)) },
		} {
			came, err := change()
			require.ErrorIs(t, err, order.ErrUnavailable, what)
			require.Zero(t, came, what)
		}
	})
}
