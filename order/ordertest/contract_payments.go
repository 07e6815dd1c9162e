package ordertest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func messageTwice(t *testing.T, d *lifeDesk) {
	id := d.place()
	m := d.payment(id, "m", "r")
	gateways := []LifecycleHarness{d.h, d.sibling(t)}
	results := make([]order.Transition, 8)
	errs := make([]error, len(results))
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i], errs[i] = gateways[i%2].Apply(d.ctx, m) })
	}
	wg.Wait()
	first := 0
	for i, r := range results {
		require.NoError(t, errs[i])
		require.Equal(t, order.Applied, r.Effect, "what it came to, for each delivery")
		require.Equal(t, order.Paid, r.Order.Status)
		require.False(t, r.RefundOwed)
		if !r.Duplicate {
			first++
		}
	}
	require.Equal(t, 1, first)
	d.recorded(id, 1, 1)
	d.messages(1, 0)

	// The order moved on: a late delivery is still what it was.
	d.ship(id, order.Applied)
	late := d.apply(m, order.Applied)
	require.True(t, late.Duplicate)
	require.Equal(t, order.Shipped, late.Order.Status)
	d.recorded(id, 2, 2)
}

func messageParked(t *testing.T, d *lifeDesk) {
	id, other := d.place(), d.place()
	d.apply(d.message(order.EventPaymentFailed, id, "m", "r", price), order.Noted)
	for range 2 {
		got := d.apply(d.payment(id, "m", "r"), order.Parked)
		require.False(t, got.Duplicate)
		require.False(t, got.RefundOwed)
	}
	d.apply(d.payment(other, "m", "r"), order.Parked)
	d.is(id, order.Pending)
	d.is(other, order.Pending)
	d.messages(1, 2)
	d.recorded(id, 1, 0)

	require.True(t, d.apply(d.message(order.EventPaymentFailed, id, "m", "r", price), order.Noted).Duplicate, "the first content stands")
	d.apply(d.payment(id, "m-2", "r"), order.Applied)
}

func messageEarly(t *testing.T, d *lifeDesk) {
	missing := order.NewID(time.Now())
	for range 2 {
		_, err := d.h.Apply(d.ctx, d.payment(missing, "m", "r"))
		require.ErrorIs(t, err, order.ErrNotFound)
	}
	d.messages(0, 0)
	d.recorded(missing, 0, 0)

	// Neither its id nor its reference is taken.
	id := d.place()
	require.False(t, d.apply(d.payment(id, "m", "r"), order.Applied).Duplicate)
}

func consumersApart(t *testing.T, d *lifeDesk) {
	id := d.place()
	m := d.payment(id, "m", "r")
	d.apply(m, order.Applied)
	m.Consumer = unique("consumer")
	got := d.apply(m, order.AlreadyThere)
	require.False(t, got.Duplicate)
	require.False(t, got.RefundOwed, "it is the same payment")
}

func paymentOnce(t *testing.T, d *lifeDesk) {
	id := d.place()
	gateways := []LifecycleHarness{d.h, d.sibling(t)}
	results := make([]order.Transition, 8)
	errs := make([]error, len(results))
	var wg sync.WaitGroup
	for i := range results {
		m := d.payment(id, unique("m"), "r")
		wg.Go(func() { results[i], errs[i] = gateways[i%2].Apply(d.ctx, m) })
	}
	wg.Wait()
	effects := map[order.Effect]int{}
	for i, r := range results {
		require.NoError(t, errs[i])
		require.False(t, r.RefundOwed)
		require.False(t, r.Duplicate)
		effects[r.Effect]++
	}
	require.Equal(t, map[order.Effect]int{order.Applied: 1, order.AlreadyThere: 7}, effects)
	d.recorded(id, 8, 1)
	d.messages(8, 0)
}

// paymentElsewhere: a reference that has paid an order cannot pay another.
func paymentElsewhere(t *testing.T, d *lifeDesk) {
	id, other := d.place(), d.place()
	d.apply(d.payment(id, "m", "r"), order.Applied)
	got := d.apply(d.payment(other, "m-2", "r"), order.Impossible)
	require.False(t, got.RefundOwed, "the money has its use")
	d.is(other, order.Pending)
	d.apply(d.payment(other, "m-3", "R"), order.Applied)
}

func wrongAmounts(t *testing.T, d *lifeDesk) {
	id := d.place()
	for i, amount := range []order.Amount{price - 1, price + 1, 1, price * 100, order.MaxAmount} {
		d.refund(d.message(order.EventPaymentSucceeded, id, unique("m"), unique("r"), amount), order.WrongAmount)
		d.is(id, order.Pending)
		d.recorded(id, i+1, 0)
	}
	d.refunds(id, 5)
	wrong := d.message(order.EventPaymentSucceeded, id, "m", "r", price-1)
	d.refund(wrong, order.WrongAmount)
	again := d.apply(wrong, order.WrongAmount)
	require.True(t, again.Duplicate)
	require.True(t, again.RefundOwed)
	d.refunds(id, 6)
	d.apply(d.payment(id, "m-2", "r-2"), order.Applied)
	d.is(id, order.Paid)
}

func refundsOwed(t *testing.T, d *lifeDesk) {
	cancelled := d.place()
	d.cancel(cancelled, order.Applied)
	late := d.payment(cancelled, "m", "r")
	d.refund(late, order.Impossible)
	require.True(t, d.apply(late, order.Impossible).Duplicate)
	d.is(cancelled, order.Cancelled)
	d.refunds(cancelled, 1)
	d.holds(100_00, 1, 1)

	paid := d.place()
	d.apply(d.payment(paid, "m-2", "r-2"), order.Applied)
	d.refund(d.payment(paid, "m-3", "r-3"), order.AlreadyThere)
	d.ship(paid, order.Applied)
	d.refund(d.payment(paid, "m-4", "r-4"), order.Stale)
	d.refunds(paid, 2)
	d.recorded(paid, 4, 2)
	d.messages(4, 0)
}

// refundOnce: however many messages tell of a payment, it is paid back once.
func refundOnce(t *testing.T, d *lifeDesk) {
	cancelled, paid, wrong := d.place(), d.place(), d.place()
	d.cancel(cancelled, order.Applied)
	d.apply(d.payment(paid, "m", "r"), order.Applied)
	for want, m := range map[order.Effect]order.PaymentMessage{
		order.Impossible:   d.payment(cancelled, "m-1", "r-1"),
		order.AlreadyThere: d.payment(paid, "m-2", "r-2"),
		order.WrongAmount:  d.message(order.EventPaymentSucceeded, wrong, "m-3", "r-3", price-1),
	} {
		d.refund(m, want)
		m.MessageID += "-again"
		require.False(t, d.apply(m, want).RefundOwed, "the provider sent it again under another id")
		m.Consumer = unique("consumer")
		got := d.apply(m, want)
		require.False(t, got.RefundOwed, "it came by another way as well")
		require.False(t, got.Duplicate)
		d.refunds(m.OrderID, 1)
	}
	d.refund(d.payment(cancelled, "m-4", "r-4"), order.Impossible)
	d.refunds(cancelled, 2)
	d.refund(d.message(order.EventPaymentSucceeded, wrong, "m-5", "r-3", price-2), order.WrongAmount)
	d.refunds(wrong, 2)
}

func notedOnly(t *testing.T, d *lifeDesk) {
	id := d.place()
	for _, want := range []order.Status{order.Pending, order.Paid, order.Shipped} {
		for _, e := range []order.EventType{order.EventPaymentFailed, order.EventPaymentRefunded} {
			m := d.message(e, id, unique("m"), "r", price)
			got := d.apply(m, order.Noted)
			require.False(t, got.RefundOwed)
			require.Equal(t, want, got.Order.Status)
			require.True(t, d.apply(m, order.Noted).Duplicate)
			d.is(id, want)
		}
		switch want {
		case order.Pending:
			d.apply(d.payment(id, "m", "r"), order.Applied)
		case order.Paid:
			d.ship(id, order.Applied)
		}
	}
	d.holds(80_10, 1, 1)
}
