package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
)

// payment is a payment of 39.80, the price of what [kit.place] orders.
func payment(id order.ID) string { return event("payment.succeeded", id, `"39.80"`, "pi_"+id.String()) }

func event(kind string, id order.ID, amount, reference string) string {
	return fmt.Sprintf(`{"type":%q,"data":{"order_id":%q,"amount":%s,"provider_reference":%q}}`, kind, id.String(), amount, reference)
}

// stored wants this many messages to be dealt with and parked.
func (k *kit) stored(done, parked int) {
	k.t.Helper()
	gotDone, gotParked, err := k.ledger.CountMessages(context.Background(), "webhook")
	require.NoError(k.t, err)
	require.Equal(k.t, [2]int{done, parked}, [2]int{gotDone, gotParked})
}

// effect wants a 200 with this content.
func (r reply) effect(t testing.TB, effect string, duplicate, refund bool) {
	t.Helper()
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.JSONEq(t, fmt.Sprintf(`{"effect":%q,"duplicate":%t,"refund_owed":%t}`, effect, duplicate, refund), r.body)
	require.Equal(t, "no-store", r.header.Get("Cache-Control"))
}

func TestACallbackTwiceHasOneEffect(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	k.deliver(delivery{id: "m", body: payment(id)}).effect(t, "applied", false, false)
	require.Equal(t, order.Paid, k.status(id))
	for _, body := range []string{
		payment(id),
		` {"data":{"provider_reference":"pi_` + id.String() + `","amount":39.8,"order_id":"` + id.String() + `"},"type":"payment\u002esucceeded"} `,
	} {
		k.deliver(delivery{id: "m", body: body, age: time.Minute}).effect(t, "applied", true, false)
	}
	require.Equal(t, 1, k.events(id))
	k.stored(1, 0)
	require.Contains(t, k.logs.String(), `"effect":"applied","duplicate":true`)
}

func TestCallbacksThatArriveAtOnceHaveOneEffect(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	replies := make(chan reply, 16)
	for range cap(replies) {
		go func() { replies <- k.deliver(delivery{id: "m", body: payment(id)}) }()
	}
	fresh := 0
	for range cap(replies) {
		r := <-replies
		require.Equal(t, http.StatusOK, r.status)
		if strings.Contains(r.body, `"duplicate":false`) {
			fresh++
		}
	}
	require.Equal(t, 1, fresh)
	require.Equal(t, 1, k.events(id))
}

func TestWhatIsNotAPaymentEventIsNotStored(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	for name, r := range map[string]reply{
		"not JSON":         k.deliver(delivery{id: "m", body: "{"}),
		"empty":            k.deliver(delivery{id: "m", body: ""}, with("Content-Type", "application/json")),
		"no such type":     k.deliver(delivery{id: "m", body: event("payment.paid", id, `"39.80"`, "r")}),
		"no reference":     k.deliver(delivery{id: "m", body: event("payment.succeeded", id, `"39.80"`, "")}),
		"long reference":   k.deliver(delivery{id: "m", body: event("payment.succeeded", id, `"39.80"`, strings.Repeat("r", 129))}),
		"another currency": k.deliver(delivery{id: "m", body: strings.Replace(payment(id), `"amount"`, `"currency":"JPY","amount"`, 1)}),
		"long id":          k.deliver(delivery{id: strings.Repeat("m", 256), body: payment(id)}),
		"id is not UTF-8":  k.deliver(delivery{id: "\xff", body: payment(id)}),
		"no amount":        k.deliver(delivery{id: "m", body: strings.Replace(payment(id), `"amount":"39.80",`, "", 1)}),
		"exponent":         k.deliver(delivery{id: "m", body: event("payment.succeeded", id, `3.98e1`, "r")}),
		"float":            k.deliver(delivery{id: "m", body: event("payment.succeeded", id, `39.800000000000004`, "r")}),
		"negative":         k.deliver(delivery{id: "m", body: event("payment.succeeded", id, `-39.80`, "r")}),
		"zero":             k.deliver(delivery{id: "m", body: event("payment.succeeded", id, `0`, "r")}),
		"no number":        k.deliver(delivery{id: "m", body: event("payment.succeeded", id, `"a lot"`, "r")}),
		"null":             k.deliver(delivery{id: "m", body: event("payment.succeeded", id, `null`, "r")}),
	} {
		require.Equal(t, http.StatusBadRequest, r.status, name)
		p := r.problem(t)
		require.Equal(t, "INVALID_REQUEST", p.Code, name)
		require.NotEmpty(t, p.Errors, name)
	}
	require.Equal(t, []string{"webhook-id"}, k.deliver(delivery{id: strings.Repeat("m", 256), body: payment(id)}).problem(t).paths())
	require.Equal(t, http.StatusRequestEntityTooLarge, k.deliver(delivery{id: "m", body: payment(id) + strings.Repeat(" ", 16<<10)}).status)
	for _, typ := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1"} {
		require.Equal(t, http.StatusUnsupportedMediaType, k.deliver(delivery{id: "m", body: payment(id)}, with("Content-Type", typ)).status, typ)
	}
	require.Equal(t, http.StatusUnsupportedMediaType, k.deliver(delivery{id: "m", body: payment(id)}, with("Content-Encoding", "gzip")).status)
	require.Equal(t, http.StatusMethodNotAllowed, k.get("/webhooks/payments").status)
	require.Zero(t, k.events(id))
	k.stored(0, 0)
	k.deliver(delivery{id: "m", body: payment(id)}).effect(t, "applied", false, false)
}

func TestAWrongAmountNeverPays(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	for i, amount := range []string{`"39.79"`, `"39.81"`, `39.79`, `3980`, `"3980.00"`, `0.01`} {
		told := amount == `39.79` || amount == `"3980.00"` // of the same payment, under another id
		k.deliver(delivery{id: fmt.Sprint("m", i), body: event("payment.succeeded", id, amount, "r")}).effect(t, "wrong_amount", false, !told)
		require.Equal(t, order.Pending, k.status(id), amount)
	}
	k.deliver(delivery{id: "m0", body: event("payment.succeeded", id, `"39.79"`, "r")}).effect(t, "wrong_amount", true, true)
	k.deliver(delivery{id: "right", body: event("payment.succeeded", id, `39.8`, "r2")}).effect(t, "applied", false, false)
	require.Equal(t, order.Paid, k.status(id))
	require.InDelta(t, 4, k.metric("oncegate_refunds_owed_total"), 0, "counted once each")
	require.InDelta(t, 6, k.metric("oncegate_payment_callbacks_total", "wrong_amount"), 0)
}

func TestAnotherContentUnderOneIDIsParked(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id, other := k.place("k"), k.place("k2")
	k.deliver(delivery{id: "m", body: event("payment.failed", id, `39.80`, "r")}).effect(t, "noted", false, false)
	k.deliver(delivery{id: "m", body: event("payment.succeeded", id, `39.80`, "r")}).effect(t, "parked", false, false)
	k.deliver(delivery{id: "m", body: event("payment.succeeded", other, `39.80`, "r")}).effect(t, "parked", false, false)
	k.deliver(delivery{id: "m", body: event("payment.failed", id, `39.80`, "r")}).effect(t, "noted", true, false)
	require.Equal(t, order.Pending, k.status(id))
	require.Equal(t, order.Pending, k.status(other))
	k.stored(1, 2)
	require.Contains(t, k.logs.String(), `"level":"WARN","msg":"request"`)
	k.deliver(delivery{id: "M", body: payment(id)}).effect(t, "applied", false, false)
}

func TestAnEventBeforeItsOrderComesAgain(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	r := k.deliver(delivery{id: "m", body: payment(order.NewID(time.Now()))})
	p := r.problem(t)
	require.Equal(t, http.StatusConflict, r.status)
	require.Equal(t, "ORDER_NOT_THERE_YET", p.Code)
	require.Equal(t, "not_committed", p.Outcome)
	require.True(t, p.Retryable)
	require.Equal(t, "5", r.header.Get("Retry-After"))
	require.Equal(t, 5000, p.RetryAfterMS)
	k.stored(0, 0)

	id := k.place("k")
	k.ledger.SetChangeFaults(ordertest.ChangeFaults{Before: func(context.Context) error { return order.ErrNotFound }})
	for range 3 { // its transaction is under way
		require.Equal(t, http.StatusConflict, k.deliver(delivery{id: "m", body: payment(id)}).status)
	}
	k.ledger.SetChangeFaults(ordertest.ChangeFaults{})
	k.deliver(delivery{id: "m", body: payment(id)}).effect(t, "applied", false, false)
}

func TestOnePaymentHasOneEffectUnderAnyID(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id, other := k.place("k"), k.place("k2")
	k.deliver(delivery{id: "m", body: event("payment.succeeded", id, `39.80`, "r")}).effect(t, "applied", false, false)
	k.deliver(delivery{id: "m2", body: event("payment.succeeded", id, `39.80`, "r")}).effect(t, "already_there", false, false)
	k.deliver(delivery{id: "m3", body: event("payment.succeeded", other, `39.80`, "r")}).effect(t, "impossible", false, false)
	k.deliver(delivery{id: "m4", body: event("payment.succeeded", id, `39.80`, "second")}).effect(t, "already_there", false, true)
	require.Equal(t, order.Pending, k.status(other))
}

func TestAPaymentForACancelledOrderIsOwedBack(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	k.cancel(id)
	k.deliver(delivery{id: "m", body: payment(id)}).effect(t, "impossible", false, true)
	k.deliver(delivery{id: "m", body: payment(id)}).effect(t, "impossible", true, true)
	require.Equal(t, order.Cancelled, k.status(id))
	require.InDelta(t, 1, k.metric("oncegate_refunds_owed_total"), 0)
	refunds, err := k.ledger.CountRefunds(context.Background(), id)
	require.NoError(t, err)
	require.Equal(t, 1, refunds)
	warned := 0
	for line := range strings.Lines(k.logs.String()) {
		if strings.Contains(line, `"refund_owed":true,"order_id":"`+id.String()+`"`) && strings.Contains(line, `"level":"WARN"`) {
			warned++
		}
	}
	require.Equal(t, 1, warned, "somebody has to look at it, once")
}

// Whoever had it first did not get to know that it was committed, or died.
func TestARefundIsToldByWhoHearsOfItAgain(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	k.cancel(id)
	k.ledger.SetChangeFaults(ordertest.ChangeFaults{After: func(context.Context) error { return order.ErrUnavailable }})
	require.Equal(t, http.StatusServiceUnavailable, k.deliver(delivery{id: "m", body: payment(id)}).status)
	require.Zero(t, k.metric("oncegate_refunds_owed_total"))
	k.ledger.SetChangeFaults(ordertest.ChangeFaults{})
	for range 2 {
		k.deliver(delivery{id: "m", body: payment(id)}).effect(t, "impossible", true, true)
	}
	require.InDelta(t, 1, k.metric("oncegate_refunds_owed_total"), 0)
	require.Contains(t, k.logs.String(), `"duplicate":true,"refund_owed":true,"order_id":"`+id.String()+`"`)
}

func TestLateFailuresAndRefundsChangeNothing(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	k.deliver(delivery{id: "m", body: payment(id)}).effect(t, "applied", false, false)
	k.deliver(delivery{id: "m2", body: event("payment.failed", id, `39.80`, "first attempt")}).effect(t, "noted", false, false)
	k.deliver(delivery{id: "m3", body: event("payment.refunded", id, `10`, "r")}).effect(t, "noted", false, false)
	require.Equal(t, order.Paid, k.status(id))
}

func TestAnEventIsOnlyAcknowledgedWhenItIsCommitted(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id, other := k.place("k"), k.place("k2")
	away := func(context.Context) error { return fmt.Errorf("%w: no route to 10.0.0.7", order.ErrUnavailable) }
	refused := func(r reply) {
		t.Helper()
		require.Equal(t, http.StatusServiceUnavailable, r.status)
		require.Equal(t, "UNAVAILABLE", r.problem(t).Code)
		require.NotEmpty(t, r.header.Get("Retry-After"))
		require.NotContains(t, r.body, "10.0.0.7")
	}
	k.ledger.SetChangeFaults(ordertest.ChangeFaults{Before: away})
	refused(k.deliver(delivery{id: "m", body: payment(id)}))
	k.stored(0, 0)
	k.ledger.SetChangeFaults(ordertest.ChangeFaults{After: away})
	refused(k.deliver(delivery{id: "m2", body: payment(other)}))

	k.ledger.SetChangeFaults(ordertest.ChangeFaults{})
	k.deliver(delivery{id: "m", body: payment(id)}).effect(t, "applied", false, false)
	k.deliver(delivery{id: "m2", body: payment(other)}).effect(t, "applied", true, false)

	k.ledger.SetChangeFaults(ordertest.ChangeFaults{Before: func(context.Context) error { return order.ErrInternal }})
	require.Equal(t, "INTERNAL", k.deliver(delivery{id: "m3", body: payment(id)}).problem(t).Code)
}

func TestCallbacksAreBoundedLikeEverythingElse(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	arrived, held := make(chan struct{}, 2), make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	defer release() // whatever fails: the gateway is not stopped while it holds a request
	k.ledger.SetChangeFaults(ordertest.ChangeFaults{Before: func(ctx context.Context) error {
		arrived <- struct{}{}
		select {
		case <-held:
		case <-ctx.Done():
		}
		return nil
	}})
	k.tune(func(t *gateway.Tuning) { t.MaxInFlight = 1 })
	first := make(chan reply, 1)
	go func() { first <- k.deliver(delivery{id: "m", body: payment(id)}) }()
	<-arrived
	r := k.deliver(delivery{id: "m2", body: payment(id)})
	require.Equal(t, "OVERLOADED", r.problem(t).Code)
	require.NotEmpty(t, r.header.Get("Retry-After"))
	release()
	(<-first).effect(t, "applied", false, false)
}
