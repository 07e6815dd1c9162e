package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

func TestARetryGetsTheFirstAnswerByteForByte(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	first := k.post(potstick, key("k1"))
	require.Equal(t, http.StatusCreated, first.status, first.body)
	require.Empty(t, first.header.Values("Idempotent-Replayed"))
	require.Empty(t, first.header.Values("Cache-Control"))

	second := k.post(potstick, key("k1"), with("X-Request-Id", "second"))
	require.Equal(t, http.StatusCreated, second.status)
	require.Equal(t, first.body, second.body)
	require.Equal(t, first.header.Get("Location"), second.header.Get("Location"))
	require.Equal(t, first.header.Get("Content-Type"), second.header.Get("Content-Type"))
	require.Equal(t, []string{"true"}, second.header.Values("Idempotent-Replayed"))
	require.Equal(t, "no-store", second.header.Get("Cache-Control"))
	require.Equal(t, "second", second.header.Get("X-Request-Id"))
	require.NotEqual(t, "second", first.header.Get("X-Request-Id"))

	require.Equal(t, first.body, k.get(first.header.Get("Location")).body, "a read agrees to the character")
	require.Equal(t, 1, k.ledger.CommitCount())
}

func TestTheAliasIsTheSameOperation(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	first := k.post(potstick, key("k1"))
	alias := k.do(http.MethodPost, "/order/create_user_order", potstick, as("alice"), key("k1"))
	require.Equal(t, first.body, alias.body)
	require.Equal(t, "true", alias.header.Get("Idempotent-Replayed"))
}

func TestSpellingsOfOneKeyAndOneBodyAreOneRequest(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	first := k.post(`{"sku":"dumpling","quantity":1,"amount":"19.90"}`, key(`k1`))
	require.Equal(t, http.StatusCreated, first.status)
	for _, body := range []string{
		`{"amount":"19.90","quantity":1,"sku":"dumpling"}`,
		"{\r\n\t\"sku\" : \"dumpling\" ,\n\"quantity\":1, \"amount\": \"19.9\"}\n",
		`{"sku":"dumpling","quantity":1,"amount":19.9}`,
		`{"sku":"dumpling","quantity":1,"amount":19.90,"external_order_no":null}`,
		`{"s\u006bu":"\u0064umpling","quantity":1,"amount":"19.\u0039"}`,
	} {
		r := k.post(body, key(`"k1"`))
		require.Equal(t, first.body, r.body, body)
		require.Equal(t, "true", r.header.Get("Idempotent-Replayed"), body)
	}
}

func TestKeysThatDifferInCaseAreTwoKeys(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	a, b := k.post(plain, key("ord-a")), k.post(plain, key("ORD-A"))
	require.Equal(t, http.StatusCreated, b.status)
	require.Empty(t, b.header.Get("Idempotent-Replayed"))
	require.NotEqual(t, a.body, b.body)
}

func TestAKeyOfAnotherContentIsReused(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.post(potstick, key("k1"))
	r := k.post(strings.Replace(potstick, "39.80", "39.81", 1), key("k1"))
	p := r.problem(t)
	require.Equal(t, http.StatusConflict, r.status)
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", p.Code)
	require.Equal(t, "rejected", p.Outcome)
	require.False(t, p.Retryable)
	require.True(t, p.SafeNewKey)
	require.Empty(t, r.header.Values("Retry-After"))
	require.NotContains(t, r.body, "39.8")

	batch := k.do(http.MethodPost, "/api/order-batches", `{"orders":[`+potstick+`]}`, as("alice"), key("k1"))
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", batch.problem(t).Code, "one key for two operations")

	k.tune(func(t *gateway.Tuning) { t.ReusedStatus = http.StatusUnprocessableEntity })
	r = k.post(plain, key("k1"))
	require.Equal(t, http.StatusUnprocessableEntity, r.status)
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", r.problem(t).Code)
	require.Equal(t, 1, k.ledger.CommitCount())
}

func TestABusinessRefusalIsReplayedByteForByte(t *testing.T) { //nolint:tparallel // the cases share what they spend
	t.Parallel()
	k := newKit(t)
	require.NoError(t, k.ledger.SetStock(context.Background(), "rare", 0))
	first := k.post(potstick, key("k0"))
	var created struct {
		OrderID string `json:"order_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(first.body), &created))
	for _, c := range []struct { //nolint:paralleltest // they share what they spend
		name, key, body, code, reason string
		status                        int
	}{
		{"balance", "k1", `{"sku":"a","quantity":1,"amount":5000}`, "INSUFFICIENT_BALANCE", "", 422},
		{"stock", "k2", `{"sku":"rare","quantity":1,"amount":1}`, "OUT_OF_STOCK", "", 422},
		{"number, same content", "k3", potstick, "ORDER_ALREADY_EXISTS", "exists", 409},
		{"number, other content", "k4", strings.Replace(potstick, "39.80", "1.00", 1), "ORDER_ALREADY_EXISTS", "exists_different", 409},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := k.post(c.body, key(c.key))
			p := r.problem(t)
			require.Equal(t, c.status, r.status)
			require.Equal(t, c.code, p.Code)
			require.Equal(t, "rejected", p.Outcome)
			require.False(t, p.Retryable)
			require.True(t, p.SafeNewKey)
			require.Empty(t, p.RequestID)
			require.NotEmpty(t, r.header.Get("X-Request-Id"))
			require.Empty(t, r.header.Values("Retry-After"))
			require.Empty(t, r.header.Values("Idempotent-Replayed"))
			require.Equal(t, "no-store", r.header.Get("Cache-Control"))
			if c.reason != "" {
				require.Len(t, p.Conflicts, 1)
				require.Equal(t, c.reason, p.Conflicts[0].Reason)
				require.Equal(t, created.OrderID, p.Conflicts[0].OrderID)
			}
			again := k.post(c.body, key(c.key))
			require.Equal(t, r.status, again.status)
			require.Equal(t, r.body, again.body)
			require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		})
	}
}

func TestARunningAttemptIsSaidToRun(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	cmd, err := order.NewCommand(order.CreateOrder, "alice", "a/b?", []order.Line{{SKU: "potsticker", Quantity: 2, Amount: 3980}})
	require.NoError(t, err)
	young := time.Now().Add(time.Hour) // a mark that is believed however slow this machine is
	k.filter.PutMark("alice", "a/b?", cmd.Digest, young)
	r := k.post(plain, key("a/b?"))
	p := r.problem(t)
	require.Equal(t, http.StatusConflict, r.status)
	require.Equal(t, "REQUEST_IN_PROGRESS", p.Code)
	require.Equal(t, "unknown", p.Outcome)
	require.True(t, p.Retryable)
	require.False(t, p.SafeNewKey)
	require.Equal(t, "/api/requests/a%2Fb%3F", p.StatusURL)
	require.Equal(t, `</api/requests/a%2Fb%3F>; rel="status"`, r.header.Get("Link"))
	require.Contains(t, []string{"1", "2"}, r.header.Get("Retry-After"))
	require.Positive(t, p.RetryAfterMS)
	require.Empty(t, r.header.Values("Preference-Applied"))

	st := k.get(p.StatusURL)
	require.Equal(t, http.StatusOK, st.status)
	require.Contains(t, st.body, `"state":"in_progress"`)
	require.NotEmpty(t, st.header.Get("Retry-After"))

	other := k.post(potstick, key("a/b?"))
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", other.problem(t).Code, "another content while the first runs")

	k.tune(func(t *gateway.Tuning) { t.MaxWait = time.Second })
	k.filter.PutMark("alice", "w", cmd.Digest, young)
	waited := k.post(plain, key("w"), with("Prefer", "wait=99999999999999999999"))
	require.Equal(t, "REQUEST_IN_PROGRESS", waited.problem(t).Code)
	require.Equal(t, "wait=1", waited.header.Get("Preference-Applied"))
}

func TestACopyJoinsTheAttemptOfThisProcess(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	arrived := k.ledger.Block()
	replies := make(chan reply, 2)
	go func() { replies <- k.post(potstick, key("k1")) }()
	<-arrived
	go func() { replies <- k.post(potstick, key("k1")) }()
	k.ledger.Release()
	a, b := <-replies, <-replies
	require.Equal(t, http.StatusCreated, a.status)
	require.Equal(t, a.body, b.body)
	require.Equal(t, 1, k.ledger.CommitCount())
}

func TestAnOrderWithoutAKeyIsUnprotectedWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	require.Equal(t, "IDEMPOTENCY_KEY_REQUIRED", k.post(plain).problem(t).Code)
	require.Equal(t, 0, k.ledger.CommitCount())

	k.tune(func(t *gateway.Tuning) { t.KeyRequired = false })
	require.Equal(t, http.StatusCreated, k.post(plain).status)
	require.Equal(t, http.StatusCreated, k.post(plain).status)
	require.Equal(t, "IDEMPOTENCY_KEY_INVALID", k.post(plain, key("")).problem(t).Code, "empty is not absent")
	require.Equal(t, 2, k.ledger.CommitCount())
}

func TestKeys(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for name, values := range map[string][]string{
		"two lines":     {"k1", "k2"},
		"equal lines":   {"k1", "k1"},
		"empty":         {""},
		"blanks":        {"   "},
		"comma":         {"k1, k2"},
		"inner blank":   {"a b"},
		"quote":         {`a"b`},
		"one quote":     {`"ab`},
		"backslash":     {`a\b`},
		"empty quoted":  {`""`},
		"not ASCII":     {"schlüssel"},
		"not UTF-8":     {"\xff\xfe"},
		"256 long":      {strings.Repeat("k", 256)},
		"tab":           {"a\tb"},
		"256 in quotes": {`"` + strings.Repeat("k", 256) + `"`},
	} {
		r := k.post(plain, key(values...))
		require.Equal(t, "IDEMPOTENCY_KEY_INVALID", r.problem(t).Code, name)
		require.Equal(t, http.StatusBadRequest, r.status, name)
	}
	require.Equal(t, 0, k.ledger.CommitCount())
	long := strings.Repeat("k", 255)
	require.Equal(t, http.StatusCreated, k.post(plain, key(`"`+long+`"`)).status)
	require.Equal(t, "true", k.post(plain, key(long)).header.Get("Idempotent-Replayed"))
}
