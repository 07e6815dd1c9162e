package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// Each request here mends what the one before was refused for: what is wrong
// with who asks is said before what is wrong with what is asked, and nothing
// reaches the ledger before the last fault is mended.
func TestFaultsOfABatchAreFoundInOrder(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.tune(func(t *gateway.Tuning) { t.MaxBatchBody = 400; t.RatePerSecond, t.RateBurst = 0.001, 2 })
	require.Equal(t, http.StatusCreated, k.batch(two("0", "00"), key("spent")).status)
	decided := k.ledger.Calls().Decide
	ask := func(body string, headers ...header) string {
		t.Helper()
		return k.do(http.MethodPost, "/api/order-batches", body, append([]header{later}, headers...)...).problem(t).Code
	}
	large := `{"orders":[]}` + strings.Repeat(" ", 400)
	text := with("Content-Type", "text/plain")
	alice, ops := as("alice"), as("alice", gateway.ScopeAdmin)
	require.Equal(t, "UNAUTHENTICATED", ask(large, text))
	require.Equal(t, "FORBIDDEN", ask(large, text, ops))
	require.Equal(t, "UNSUPPORTED_MEDIA_TYPE", ask(large, text, alice))
	require.Equal(t, "IDEMPOTENCY_KEY_REQUIRED", ask(large, alice))
	require.Equal(t, "IDEMPOTENCY_KEY_INVALID", ask(large, alice, key("a,b")))
	require.Equal(t, "BODY_TOO_LARGE", ask(large, alice, key("k")))
	require.Equal(t, "INVALID_REQUEST", ask(`{"orders":[]}`, alice, key("k")))
	require.Equal(t, "RATE_LIMITED", ask(two("1", "2"), alice, key("k")))
	require.Equal(t, decided, k.ledger.Calls().Decide)
	k.tune(func(t *gateway.Tuning) { t.RatePerSecond = 0 })
	require.Equal(t, http.StatusAccepted, k.batch(two("1", "2"), key("k"), later).status, "the key is still free")
}

func TestFaultsOfACallbackAreFoundInOrder(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	text := with("Content-Type", "text/plain")
	large := "{" + strings.Repeat(" ", 16<<10)
	code := func(r reply) string {
		t.Helper()
		return r.problem(t).Code
	}
	require.Equal(t, "UNSUPPORTED_MEDIA_TYPE", code(k.deliver(delivery{id: "m", body: large, age: time.Hour, signed: "x"}, text)))
	require.Equal(t, "SIGNATURE_INVALID", code(k.deliver(delivery{id: "m", body: large, age: time.Hour, signed: "x"})), "without its body")
	require.Equal(t, "BODY_TOO_LARGE", code(k.deliver(delivery{id: "m", body: large, signed: "x"})))
	require.Equal(t, "SIGNATURE_INVALID", code(k.deliver(delivery{id: "m", body: "{", signed: "x"})), "what nobody signed is not explained")
	require.Equal(t, "INVALID_REQUEST", code(k.deliver(delivery{id: "m", body: "{"})))
	require.Equal(t, "ORDER_NOT_THERE_YET", code(k.deliver(delivery{id: "m", body: payment(order.NewID(time.Now()))})))
	k.deliver(delivery{id: "m", body: payment(id)}).effect(t, "applied", false, false)
}
