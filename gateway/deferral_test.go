package gateway_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

var later = with("Prefer", "respond-async")

func TestABatchCanBeAnsweredBeforeItIsCarriedOut(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := context.Background()
	for range 3 {
		r := k.batch(two("1", "2"), key("b/1"), later)
		require.Equal(t, http.StatusAccepted, r.status, r.body)
		require.Equal(t, "/api/requests/b%2F1", r.header.Get("Location"))
		require.Equal(t, "respond-async", r.header.Get("Preference-Applied"))
		require.Equal(t, "1", r.header.Get("Retry-After"))
		require.Equal(t, "no-store", r.header.Get("Cache-Control"))
		require.Empty(t, r.header.Values("Idempotent-Replayed"))
		require.JSONEq(t, `{"state":"in_progress","retry_after_ms":1000,"status_url":"/api/requests/b%2F1"}`, r.body)

		st := k.get(r.header.Get("Location"))
		require.Contains(t, st.body, `"state":"in_progress"`)
		require.NotEmpty(t, st.header.Get("Retry-After"))
	}
	running := k.batch(two("1", "2"), key("b/1"))
	require.Equal(t, "REQUEST_IN_PROGRESS", running.problem(t).Code, "without the preference it is a request that runs")
	require.NotEmpty(t, running.header.Get("Retry-After"))
	for _, h := range [][]header{{key("b/1"), later}, {key("b/1")}} {
		require.Equal(t, "IDEMPOTENCY_KEY_REUSED", k.batch(two("1", "3"), h...).problem(t).Code)
	}
	require.Equal(t, "NOT_FOUND", k.do(http.MethodGet, "/api/requests/b%2F1", "", as("bob")).problem(t).Code)
	require.Zero(t, k.ledger.CommitCount())

	require.NoError(t, k.ledger.CarryOut(ctx))
	first := k.batch(two("1", "2"), key("b/1"), later)
	require.Equal(t, http.StatusCreated, first.status)
	require.Equal(t, "true", first.header.Get("Idempotent-Replayed"))
	require.Equal(t, "/api/requests/b%2F1", first.header.Get("Location"))
	require.Empty(t, first.header.Values("Preference-Applied"), "it was not answered later")
	require.Equal(t, first.body, k.batch(two("1", "2"), key("b/1")).body)
	require.Contains(t, k.get("/api/requests/b%2F1").body, `"body":`+first.body)
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", k.batch(two("1", "3"), key("b/1"), later).problem(t).Code)
	require.NoError(t, k.ledger.CarryOut(ctx))
	require.Equal(t, 1, k.ledger.CommitCount())

	synchronous := newKit(t).batch(two("1", "2"), key("b/1"))
	require.Len(t, first.body, len(synchronous.body), "the same answer but for ids and times")
	require.Equal(t, synchronous.header.Get("Content-Type"), first.header.Get("Content-Type"))
}

func TestWhatIsDecidedAlreadyIsNotDeferred(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	first := k.batch(two("1", "2"), key("k"))
	again := k.batch(two("1", "2"), key("k"), later)
	require.Equal(t, http.StatusCreated, again.status)
	require.Equal(t, first.body, again.body)
	require.Empty(t, again.header.Values("Preference-Applied"))
	n, err := k.ledger.CountDeferred(context.Background(), "alice")
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestADeferredRefusalIsRememberedWithItsReasons(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := context.Background()
	require.NoError(t, k.ledger.SetBalance(ctx, "alice", 2_00))
	require.Equal(t, http.StatusAccepted, k.batch(two("1", "2"), key("poor"), later).status)
	require.NoError(t, k.ledger.CarryOut(ctx))
	r := k.batch(two("1", "2"), key("poor"), later)
	require.Equal(t, http.StatusUnprocessableEntity, r.status)
	require.Equal(t, "INSUFFICIENT_BALANCE", r.problem(t).Code)
	require.Equal(t, "true", r.header.Get("Idempotent-Replayed"))
	st := k.get("/api/requests/poor")
	require.Contains(t, st.body, `"state":"failed"`)
	require.Contains(t, st.body, `"body":`+r.body)
}

func TestADeferredRequestThatCannotSucceedEnds(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	require.Equal(t, http.StatusAccepted, k.batch(two("1", "2"), key("k"), later).status)
	k.ledger.SetFault(func(*order.Command) error { return order.Undecided(order.OutcomeNotCommitted, order.ErrInternal) })
	attempts := 1
	for ; k.ledger.CarryOut(context.Background()) != nil; attempts++ {
		require.Less(t, attempts, 100, "it is tried for ever")
	}
	require.Greater(t, attempts, 1)
	k.ledger.SetFault(nil)
	for _, h := range [][]header{{key("k")}, {key("k"), later}} {
		r := k.batch(two("1", "2"), h...)
		p := r.problem(t)
		require.Equal(t, http.StatusInternalServerError, r.status)
		require.Equal(t, "EXECUTION_FAILED", p.Code)
		require.Equal(t, "rejected", p.Outcome)
		require.False(t, p.Retryable)
		require.True(t, p.SafeNewKey)
		require.Equal(t, "true", r.header.Get("Idempotent-Replayed"))
	}
	require.Contains(t, k.get("/api/requests/k").body, `"state":"failed"`)
	require.Equal(t, http.StatusCreated, k.batch(two("1", "2"), key("new")).status)
}

func TestWhatCannotBeAcceptedSaysSo(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	require.Equal(t, "IDEMPOTENCY_KEY_REQUIRED", k.batch(two("1", "2"), later).problem(t).Code)
	require.Equal(t, []string{"orders"}, k.batch(`{}`, key("k"), later).problem(t).paths())
	stranger := k.do(http.MethodPost, "/api/order-batches", two("1", "2"), as("mallory"), key("k"), later)
	require.Equal(t, "USER_UNKNOWN", stranger.problem(t).Code)

	k.ledger.SetLostReply(func(*order.Command, order.Decision) error {
		return order.Undecided(order.OutcomeUnknown, order.ErrUnavailable)
	})
	r := k.batch(two("1", "2"), key("k"), later)
	p := r.problem(t)
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Equal(t, "unknown", p.Outcome)
	require.Equal(t, "/api/requests/k", p.StatusURL)
	require.NotEmpty(t, r.header.Get("Retry-After"))
	require.Empty(t, r.header.Values("Preference-Applied"))
	k.ledger.SetLostReply(nil)
	k.filter.Flush() // the mark of an unknown outcome ages out
	require.Equal(t, http.StatusAccepted, k.batch(two("1", "2"), key("k"), later).status, "the same again settles it")
}

func TestThePreferenceIsPassedOverWhereItMeansNothing(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	single := k.post(potstick, key("single"), later)
	require.Equal(t, http.StatusCreated, single.status)
	require.Empty(t, single.header.Values("Preference-Applied"))
	require.Equal(t, http.StatusCreated, k.batch(two("1", "2"), key("."), later).status, "a key that has no address")
	k.tune(func(t *gateway.Tuning) { t.KeyRequired = false })
	require.Equal(t, http.StatusCreated, k.batch(two("3", "4"), later).status, "nobody could ask what became of it")
	for _, prefer := range []string{"respond-sync", "respond-asynchronously", "x=respond-async", "return=minimal"} {
		require.Equal(t, http.StatusCreated, k.batch(two(prefer+"1", prefer+"2"), key(prefer), with("Prefer", prefer)).status, prefer)
	}
	for _, prefer := range []string{"Respond-Async", "wait=5, respond-async", "respond-async;q=1"} {
		r := k.batch(two("5", "6"), key("k"), with("Prefer", prefer))
		require.Equal(t, http.StatusAccepted, r.status, prefer)
		require.Equal(t, []string{"respond-async"}, r.header.Values("Preference-Applied"), prefer)
	}
	require.NoError(t, k.ledger.CarryOut(context.Background()))
	decided := k.batch(two("5", "6"), key("k"), with("Prefer", "wait=5, respond-async"))
	require.Equal(t, http.StatusCreated, decided.status)
	require.Empty(t, decided.header.Values("Preference-Applied"), "neither was applied")
}
