package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
)

func (k *kit) cancel(id order.ID, headers ...header) reply {
	k.t.Helper()
	return k.do(http.MethodPost, "/api/orders/"+id.String()+"/cancel", "", append([]header{as("alice")}, headers...)...)
}

func (k *kit) balance() order.Amount {
	k.t.Helper()
	b, err := k.ledger.Balance(context.Background(), "alice")
	require.NoError(k.t, err)
	return b
}

// events counts what is recorded of an order's changes.
func (k *kit) events(id order.ID) int {
	k.t.Helper()
	n, err := k.ledger.CountEvents(context.Background(), id, "")
	require.NoError(k.t, err)
	return n
}

func TestCancellingTwiceIsAnsweredAlikeAndGivesBackOnce(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	require.Equal(t, order.Amount(960_20), k.balance())
	first := k.cancel(id)
	require.Equal(t, http.StatusOK, first.status, first.body)
	require.Contains(t, first.body, `"status":"CANCELLED"`)
	require.Equal(t, "no-store", first.header.Get("Cache-Control"))
	require.Equal(t, first.body, k.cancel(id, with("Content-Type", "text/plain")).body)
	require.Equal(t, first.body, k.get("/api/orders/"+id.String()).body)
	require.Equal(t, order.Amount(1_000_00), k.balance())

	replayed := k.post(plain, key("k"))
	require.Equal(t, "true", replayed.header.Get("Idempotent-Replayed"))
	require.Contains(t, replayed.body, `"status":"PENDING"`, "the first answer, not the state of today")
	require.Equal(t, 1, k.ledger.CommitCount())
}

func TestOnlyTheOwnerCancels(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	foreign := k.cancel(id, as("bob"))
	unknown := k.cancel(order.NewID(time.Now()), as("bob"))
	require.Equal(t, http.StatusNotFound, foreign.status)
	require.Len(t, foreign.body, len(unknown.body), "a foreign order looks like none")
	require.Equal(t, "FORBIDDEN", k.cancel(id, as("alice", gateway.ScopeAdmin)).problem(t).Code)
	require.Equal(t, "UNAUTHENTICATED", k.cancel(id, func(h http.Header) { h.Del("Authorization") }).problem(t).Code)
	for _, path := range []string{"/api/orders/x/cancel", "/api/orders/" + strings.ToUpper(id.String()) + "/cancel", "/api/orders//cancel"} {
		require.Equal(t, "NOT_FOUND", k.do(http.MethodPost, path, "", as("alice")).problem(t).Code, path)
	}
	require.Equal(t, "METHOD_NOT_ALLOWED", k.get("/api/orders/"+id.String()+"/cancel").problem(t).Code)
	require.Equal(t, order.Pending, k.status(id))
	require.Zero(t, k.events(id))
}

func TestAPaidOrderCannotBeCancelled(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	require.Equal(t, http.StatusOK, k.deliver(delivery{id: "m", body: payment(id)}).status)
	r := k.cancel(id)
	p := r.problem(t)
	require.Equal(t, http.StatusConflict, r.status)
	require.Equal(t, "ORDER_STATE_CONFLICT", p.Code)
	require.Equal(t, "rejected", p.Outcome)
	require.False(t, p.Retryable)
	require.Contains(t, p.Detail, "PAID")
	require.Empty(t, r.header.Values("Retry-After"))
	require.Equal(t, order.Paid, k.status(id))
	require.Equal(t, order.Amount(960_20), k.balance())
}

// A client that leaves while its order is being cancelled undoes nothing.
func TestADisconnectDoesNotUndoACancellation(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	arrived, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	k.ledger.SetChangeFaults(ordertest.ChangeFaults{
		Before: func(context.Context) error {
			close(arrived)
			<-release
			return nil
		},
		After: func(ctx context.Context) error {
			done <- ctx.Err()
			return nil
		},
	})
	ctx, leave := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.url+"/api/orders/"+id.String()+"/cancel", http.NoBody)
	require.NoError(t, err)
	as("alice")(req.Header)
	gone := make(chan error, 1)
	go func() {
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			err = resp.Body.Close()
		}
		gone <- err
	}()
	<-arrived
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	close(release)
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "the change ended with its client")
	}
	require.Equal(t, order.Cancelled, k.status(id))
	k.ledger.SetChangeFaults(ordertest.ChangeFaults{})
	require.Equal(t, http.StatusOK, k.cancel(id).status)
}

func TestAChangeThatIsNotAnsweredCanBeSentAgain(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	away := func(context.Context) error {
		return fmt.Errorf("%w: connection refused at 10.0.0.7", order.ErrUnavailable)
	}
	for _, faults := range []ordertest.ChangeFaults{{Before: away}, {After: away}} {
		k.ledger.SetChangeFaults(faults)
		r := k.cancel(id)
		p := r.problem(t)
		require.Equal(t, http.StatusServiceUnavailable, r.status)
		require.Equal(t, "unknown", p.Outcome)
		require.True(t, p.Retryable)
		require.NotEmpty(t, r.header.Get("Retry-After"))
		require.NotContains(t, r.body, "10.0.0.7")
	}
	k.ledger.SetChangeFaults(ordertest.ChangeFaults{})
	require.Equal(t, http.StatusOK, k.cancel(id).status)
	require.Equal(t, order.Amount(1_000_00), k.balance())

	k.tune(func(t *gateway.Tuning) { t.ChangeBudget = time.Millisecond })
	k.ledger.SetChangeFaults(ordertest.ChangeFaults{Before: func(ctx context.Context) error { <-ctx.Done(); return nil }})
	require.Equal(t, "UNAVAILABLE", k.cancel(id).problem(t).Code, "no change takes longer than its budget")
}

func TestRepeatedCancellationsAreChargedLess(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	other := k.place("k2")
	k.tune(func(t *gateway.Tuning) { t.RatePerSecond, t.RateBurst = 0.001, 3 })
	for range 10 {
		require.Equal(t, http.StatusOK, k.cancel(id).status)
	}
	require.Equal(t, http.StatusOK, k.cancel(other).status)
	r := k.cancel(order.NewID(time.Now()))
	require.Equal(t, http.StatusTooManyRequests, r.status)
	require.NotEmpty(t, r.header.Get("Retry-After"))
}

func TestOperatorsShipPaidOrders(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.place("k")
	path := "/admin/v1/orders/" + id.String() + "/ship"
	early := d.ask(here, http.MethodPost, path, `{}`)
	require.Equal(t, http.StatusConflict, early.status)
	require.Equal(t, "ORDER_STATE_CONFLICT", early.problem(t).Code)
	require.Contains(t, early.problem(t).Detail, "PENDING")

	require.Equal(t, http.StatusOK, d.deliver(delivery{id: "m", body: payment(id)}).status)
	for _, effect := range []string{"applied", "already_there"} {
		r := d.ask(here, http.MethodPost, path, `{}`)
		require.Equal(t, http.StatusOK, r.status, r.body)
		require.JSONEq(t, `{"order_id":"`+id.String()+`","status":"SHIPPED","effect":"`+effect+`"}`, r.body)
	}
	require.Contains(t, d.get("/api/orders/"+id.String()).body, `"status":"SHIPPED"`)
	require.Equal(t, "ORDER_STATE_CONFLICT", d.cancel(id).problem(t).Code)

	gone := d.place("k2")
	d.cancel(gone)
	require.Equal(t, "ORDER_STATE_CONFLICT", d.ask(here, http.MethodPost, "/admin/v1/orders/"+gone.String()+"/ship", `{}`).problem(t).Code)
	missing := d.ask(here, http.MethodPost, "/admin/v1/orders/"+order.NewID(time.Now()).String()+"/ship", `{}`)
	require.Equal(t, "NOT_FOUND", missing.problem(t).Code)
	require.Equal(t, "NOT_FOUND", d.ask(here, http.MethodPost, "/admin/v1/orders/x/ship", `{}`).problem(t).Code)
	require.Equal(t, "METHOD_NOT_ALLOWED", d.ask(here, http.MethodGet, path, "").problem(t).Code)
	d.ledger.SetChangeFaults(ordertest.ChangeFaults{Before: func(context.Context) error { return order.ErrUnavailable }})
	away := d.ask(here, http.MethodPost, path, `{}`)
	require.Equal(t, http.StatusServiceUnavailable, away.status)
	require.NotEmpty(t, away.header.Get("Retry-After"))
}

func TestOnlyOperatorsShip(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *gateway.AdminOptions) { o.AllowLoopback = false })
	id := d.place("k")
	require.Equal(t, http.StatusOK, d.deliver(delivery{id: "m", body: payment(id)}).status)
	path := "/admin/v1/orders/" + id.String() + "/ship"
	admin := as("ops", gateway.ScopeAdmin)
	for name, c := range map[string]struct {
		code    string
		body    string
		headers []header
	}{
		"nobody":        {"UNAUTHENTICATED", `{}`, nil},
		"a customer":    {"FORBIDDEN", `{}`, []header{as("alice", gateway.ScopeOrders)}},
		"another site":  {"FORBIDDEN", `{}`, []header{admin, with("Origin", "https://evil.example")}},
		"a form":        {"UNSUPPORTED_MEDIA_TYPE", `{}`, []header{admin, with("Content-Type", "text/plain")}},
		"no type":       {"UNSUPPORTED_MEDIA_TYPE", ``, []header{admin}},
		"unread member": {"INVALID_REQUEST", `{"tracking":"1Z"}`, []header{admin}},
		"no object":     {"INVALID_REQUEST", `[]`, []header{admin}},
		"two objects":   {"INVALID_REQUEST", `{}{}`, []header{admin}},
		"too large":     {"BODY_TOO_LARGE", `{}` + strings.Repeat(" ", 5000), []header{admin}},
	} {
		require.Equal(t, c.code, d.ask(elsewhere, http.MethodPost, path, c.body, c.headers...).problem(t).Code, name)
		require.Equal(t, order.Paid, d.status(id), name)
	}
	require.Equal(t, http.StatusOK, d.ask(elsewhere, http.MethodPost, path, "", admin, with("Content-Type", "application/json")).status, "an empty body says all")
	require.Equal(t, order.Shipped, d.status(id))
}
