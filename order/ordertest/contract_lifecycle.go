package ordertest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// LifecycleHarness is a lifecycle under test together with eyes on its
// database. Its Sibling must be a LifecycleHarness too.
type LifecycleHarness interface {
	Harness
	order.Lifecycle
	// CountEvents tells how many events of an order had this effect; with an
	// empty effect, how many it has at all.
	CountEvents(ctx context.Context, id order.ID, effect order.Effect) (int, error)
	// CountRefunds tells how many events of an order owe a refund.
	CountRefunds(ctx context.Context, id order.ID) (int, error)
	// CountMessages tells how many messages a consumer has dealt with, and how
	// many contents it has parked.
	CountMessages(ctx context.Context, consumer string) (done, parked int, err error)
}

// RunLifecycle checks the promises of [order.Lifecycle]. As with [RunLedger],
// all tests can share one database.
func RunLifecycle(t *testing.T, open func(t *testing.T) LifecycleHarness) {
	h := open(t)
	for _, s := range []struct {
		name string
		run  func(t *testing.T, d *lifeDesk)
	}{
		{"CancelGivesBackOnce", cancelOnce},
		{"CancelGivesBackNoStockThatWasNotTaken", cancelUnlimited},
		{"CancelOfAnotherUsersOrderIsNotFound", cancelForeign},
		{"NothingMovesBackwards", noWayBack},
		{"AMessageThatComesTwiceHasOneEffect", messageTwice},
		{"AMessageWithAnotherContentIsParked", messageParked},
		{"AMessageBeforeItsOrderLeavesNothing", messageEarly},
		{"ConsumersDoNotMeet", consumersApart},
		{"OnePaymentHasOneEffect", paymentOnce},
		{"OnePaymentPaysOneOrder", paymentElsewhere},
		{"WrongAmountsNeverPay", wrongAmounts},
		{"PaymentsWithoutUseAreOwedBack", refundsOwed},
		{"OnePaymentIsOwedBackOnce", refundOnce},
		{"FailuresAndRefundsChangeNoState", notedOnly},
		{"EventsInAnyOrderFollowTheModel", anyOrder},
		{"EventsOnFourThreadsEndAlike", fourThreads},
		{"EndedContextChangesNothing", endedChange},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t, newLifeDesk(t, h))
		})
	}
}

// lifeDesk is a desk with a consumer of its own.
type lifeDesk struct {
	*desk
	h        LifecycleHarness
	consumer string
}

const price = order.Amount(19_90)

func newLifeDesk(t *testing.T, h LifecycleHarness) *lifeDesk {
	t.Helper()
	return &lifeDesk{newDesk(t, h, 100_00), h, unique("consumer")}
}

// place makes one order of the price.
func (d *lifeDesk) place() order.ID {
	d.t.Helper()
	return d.orderID(d.decide(d.one(unique("k"), d.line(price)), order.Created).Receipt)
}

// sibling is a second gateway on the same database.
func (d *lifeDesk) sibling(t *testing.T) LifecycleHarness {
	t.Helper()
	s, ok := d.h.Sibling(t).(LifecycleHarness)
	require.True(t, ok, "the sibling has no lifecycle")
	return s
}

// payment makes a message whose names belong to this desk alone.
func (d *lifeDesk) payment(id order.ID, message, reference string) order.PaymentMessage {
	return d.message(order.EventPaymentSucceeded, id, message, reference, price)
}

func (d *lifeDesk) message(e order.EventType, id order.ID, message, reference string, amount order.Amount) order.PaymentMessage {
	m := order.PaymentMessage{
		Consumer: d.consumer, MessageID: message, Type: e, OrderID: id, Amount: amount, ProviderReference: d.consumer + "/" + reference,
	}
	m.Body = fmt.Appendf(nil, "%s %s %s %s", m.Type, id, amount, m.ProviderReference)
	m.Digest = sha256.Sum256(m.Body)
	return m
}

// apply wants an effect.
func (d *lifeDesk) apply(m order.PaymentMessage, want order.Effect) order.Transition {
	d.t.Helper()
	got, err := d.h.Apply(d.ctx, m)
	require.NoError(d.t, err)
	require.Equal(d.t, want, got.Effect)
	return got
}

// refund wants an effect that owes the payment back.
func (d *lifeDesk) refund(m order.PaymentMessage, want order.Effect) {
	d.t.Helper()
	require.True(d.t, d.apply(m, want).RefundOwed)
}

func (d *lifeDesk) cancel(id order.ID, want order.Effect) order.Transition {
	d.t.Helper()
	got, err := d.h.Cancel(d.ctx, d.user, id)
	require.NoError(d.t, err)
	require.Equal(d.t, want, got.Effect)
	return got
}

func (d *lifeDesk) ship(id order.ID, want order.Effect) order.Transition {
	d.t.Helper()
	got, err := d.h.Ship(d.ctx, id)
	require.NoError(d.t, err)
	require.Equal(d.t, want, got.Effect)
	return got
}

// is wants the order to be in a state, for everybody who reads it.
func (d *lifeDesk) is(id order.ID, want order.Status) {
	d.t.Helper()
	o, err := d.h.Order(d.ctx, d.user, id)
	require.NoError(d.t, err)
	require.Equal(d.t, want, o.Status)
}

// recorded wants an order to have this many events, so many of them applied.
func (d *lifeDesk) recorded(id order.ID, all, applied int) {
	d.t.Helper()
	n, err := d.h.CountEvents(d.ctx, id, "")
	require.NoError(d.t, err)
	require.Equal(d.t, all, n, "events")
	n, err = d.h.CountEvents(d.ctx, id, order.Applied)
	require.NoError(d.t, err)
	require.Equal(d.t, applied, n, "events that were applied")
}

func (d *lifeDesk) refunds(id order.ID, want int) {
	d.t.Helper()
	n, err := d.h.CountRefunds(d.ctx, id)
	require.NoError(d.t, err)
	require.Equal(d.t, want, n, "refunds")
}

func (d *lifeDesk) messages(done, parked int) {
	d.t.Helper()
	gotDone, gotParked, err := d.h.CountMessages(d.ctx, d.consumer)
	require.NoError(d.t, err)
	require.Equal(d.t, done, gotDone, "messages that were dealt with")
	require.Equal(d.t, parked, gotParked, "parked messages")
}

func endedChange(t *testing.T, d *lifeDesk) {
	id := d.place()
	ctx, cancel := context.WithCancel(d.ctx)
	cancel()
	_, err := d.h.Cancel(ctx, d.user, id)
	require.ErrorIs(t, err, order.ErrUnavailable)
	_, err = d.h.Ship(ctx, id)
	require.ErrorIs(t, err, order.ErrUnavailable)
	_, err = d.h.Apply(ctx, d.payment(id, "m", "r"))
	require.ErrorIs(t, err, order.ErrUnavailable)
	d.is(id, order.Pending)
	d.recorded(id, 0, 0)
	d.messages(0, 0)

	_, err = d.h.Ship(d.ctx, order.NewID(time.Now()))
	require.ErrorIs(t, err, order.ErrNotFound)
}
