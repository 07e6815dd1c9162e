package ordertest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func cancelOnce(t *testing.T, d *lifeDesk) {
	require.NoError(t, d.h.SetStock(d.ctx, d.sku, 3))
	id := d.place()
	d.holds(80_10, 1, 1)
	d.stocked(d.sku, 2)

	gateways := []LifecycleHarness{d.h, d.sibling(t)}
	effects := make([]order.Effect, 16)
	var wg sync.WaitGroup
	for i := range effects {
		wg.Go(func() {
			if got, err := gateways[i%2].Cancel(d.ctx, d.user, id); err == nil {
				effects[i] = got.Effect
			}
		})
	}
	wg.Wait()
	count := map[order.Effect]int{}
	for _, e := range effects {
		count[e]++
	}
	require.Equal(t, map[order.Effect]int{order.Applied: 1, order.AlreadyThere: 15}, count)
	d.holds(100_00, 1, 1)
	d.stocked(d.sku, 3)
	d.recorded(id, 16, 1)
	got := d.cancel(id, order.AlreadyThere)
	require.Equal(t, order.Cancelled, got.Order.Status)
	require.Equal(t, id, got.Order.ID)

	// The key still answers with what it made, and makes nothing new.
	d.counts(1, 1)
}

func cancelUnlimited(_ *testing.T, d *lifeDesk) {
	id := d.place()
	require.NoError(d.t, d.h.SetStock(d.ctx, d.sku, 5))
	d.cancel(id, order.Applied)
	d.stocked(d.sku, 5)
}

func cancelForeign(t *testing.T, d *lifeDesk) {
	id := d.place()
	for user, wanted := range map[string]order.ID{unique("stranger"): id, d.user: order.NewID(time.Now())} {
		_, err := d.h.Cancel(d.ctx, user, wanted)
		require.ErrorIs(t, err, order.ErrNotFound)
	}
	other := newDesk(t, d.h, 1_00)
	_, err := d.h.Cancel(d.ctx, other.user, id)
	require.ErrorIs(t, err, order.ErrNotFound)
	d.is(id, order.Pending)
	d.recorded(id, 0, 0)
	d.holds(80_10, 1, 1)
	other.holds(1_00, 0, 0)
}

func noWayBack(t *testing.T, d *lifeDesk) {
	id := d.place()
	d.ship(id, order.Impossible)
	d.is(id, order.Pending)
	paid := d.apply(d.payment(id, "m", "r"), order.Applied)
	require.Equal(t, order.Paid, paid.Order.Status)
	require.False(t, paid.Order.UpdatedAt.Before(paid.Order.CreatedAt))
	d.cancel(id, order.Impossible)
	shipped := d.ship(id, order.Applied)
	require.Equal(t, order.Shipped, shipped.Order.Status)
	require.Equal(t, order.Shipped, d.ship(id, order.AlreadyThere).Order.Status)
	d.cancel(id, order.Impossible)
	d.apply(d.payment(id, "m2", "r"), order.Stale)
	d.is(id, order.Shipped)
	d.recorded(id, 7, 2)
	d.holds(80_10, 1, 1)

	gone := d.place()
	d.cancel(gone, order.Applied)
	d.ship(gone, order.Impossible)
	d.is(gone, order.Cancelled)
}

// anyOrder tries every order of arrival, each event twice.
func anyOrder(t *testing.T, d *lifeDesk) {
	require.NoError(t, d.h.SetBalance(d.ctx, d.user, order.MaxBalance))
	for n, events := range permutations([]order.Status{order.Paid, order.Shipped, order.Cancelled}) {
		id := d.place()
		state := order.Pending
		want, owedBefore := 0, false
		for round, e := range slices.Concat(events, events) {
			effect := order.Next(state, e)
			if effect == order.Applied {
				state = e
				want++
			}
			switch e {
			case order.Paid:
				message := unique("m")
				owed := state == order.Cancelled && !owedBefore
				owedBefore = owedBefore || owed
				got := d.apply(d.payment(id, message, id.String()), effect)
				require.Equal(t, owed, got.RefundOwed, "%d, round %d", n, round)
			case order.Shipped:
				d.ship(id, effect)
			default:
				d.cancel(id, effect)
			}
			d.is(id, state)
		}
		d.recorded(id, 2*len(events), want)
	}
}

// fourThreads has the same events arrive all at once. Who is first decides;
// afterwards nothing is lost and nothing happened twice.
func fourThreads(t *testing.T, d *lifeDesk) {
	gateways := []LifecycleHarness{d.h, d.sibling(t)}
	for round := range 6 {
		require.NoError(t, d.h.SetBalance(d.ctx, d.user, 100_00))
		id := d.place()
		var steps []func(h LifecycleHarness) error
		for _, message := range []string{"a", "b"} { // of one payment
			m := d.payment(id, id.String()+message, id.String())
			steps = append(steps, func(h LifecycleHarness) error { _, err := h.Apply(d.ctx, m); return err })
		}
		failed := d.message(order.EventPaymentFailed, id, id.String()+"c", id.String(), price)
		steps = append(
			steps,
			func(h LifecycleHarness) error { _, err := h.Apply(d.ctx, failed); return err },
			func(h LifecycleHarness) error { _, err := h.Ship(d.ctx, id); return err },
		)
		if round%2 == 0 {
			steps = append(steps, func(h LifecycleHarness) error { _, err := h.Cancel(d.ctx, d.user, id); return err })
		}
		steps = append(steps, steps...)
		rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		errs := make([]error, len(steps))
		var wg sync.WaitGroup
		for thread := range 4 {
			wg.Go(func() {
				for i := thread; i < len(steps); i += 4 {
					errs[i] = steps[i](gateways[thread%2])
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		o, err := d.h.Order(d.ctx, d.user, id)
		require.NoError(t, err)
		balance, err := d.h.Balance(d.ctx, d.user)
		require.NoError(t, err)
		applied, err := d.h.CountEvents(d.ctx, id, order.Applied)
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
			require.Failf(t, "an event was lost", "the order is %s", o.Status)
		}
	}
}

// permutations returns every order of the values.
func permutations[T any](values []T) [][]T {
	if len(values) == 0 {
		return [][]T{nil}
	}
	var all [][]T
	for i := range values {
		rest := slices.Delete(slices.Clone(values), i, i+1)
		for _, p := range permutations(rest) {
			all = append(all, append([]T{values[i]}, p...))
		}
	}
	return all
}
