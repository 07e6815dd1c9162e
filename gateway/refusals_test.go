package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

func TestNothingIsClaimedForAMalformedRequest(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for _, c := range []struct {
		name, body, code string
		status           int
		headers          []header
	}{
		{"not JSON", "{", "INVALID_REQUEST", 400, nil},
		{"empty", "", "INVALID_REQUEST", 400, []header{with("Content-Type", "application/json")}},
		{"trailing data", plain + "{}", "INVALID_REQUEST", 400, nil},
		{"no type", plain, "UNSUPPORTED_MEDIA_TYPE", 415, []header{func(h http.Header) { h.Del("Content-Type") }}},
		{"form", plain, "UNSUPPORTED_MEDIA_TYPE", 415, []header{with("Content-Type", "application/x-www-form-urlencoded")}},
		{"compressed", plain, "UNSUPPORTED_MEDIA_TYPE", 415, []header{with("Content-Encoding", "gzip")}},
		{"too large", plain + strings.Repeat(" ", 64<<10), "BODY_TOO_LARGE", 413, nil},
		{"too large to be a number", `{"sku":"` + strings.Repeat("a", 70<<10) + `"}`, "BODY_TOO_LARGE", 413, nil},
	} {
		r := k.post(c.body, append([]header{key("k1")}, c.headers...)...)
		p := r.problem(t)
		require.Equal(t, c.status, r.status, c.name)
		require.Equal(t, c.code, p.Code, c.name)
		require.Equal(t, "rejected", p.Outcome, c.name)
		require.False(t, p.SafeNewKey, c.name)
		require.Empty(t, r.header.Values("Retry-After"))
	}
	require.Equal(t, 0, k.ledger.Calls().Decide)
	require.Equal(t, "NOT_FOUND", k.get("/api/requests/k1").problem(t).Code)
	require.Equal(t, http.StatusCreated, k.post(plain, key("k1")).status, "the key is still free")
}

func TestABodyMayBeAsLargeAsItsLimit(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.tune(func(t *gateway.Tuning) { t.MaxOrderBody = len(plain) + 3 })
	require.Equal(t, http.StatusCreated, k.post(plain+"   ", key("k1")).status)
	require.Equal(t, http.StatusRequestEntityTooLarge, k.post(plain+"    ", key("k2")).status)
}

func TestUndecidedOrdersSayWhatIsKnown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		err       error
		status    int
		code      string
		outcome   string
		statusURL bool
	}{
		{"unknown", order.Undecided(order.OutcomeUnknown, order.ErrUnavailable), 503, "UNAVAILABLE", "unknown", true},
		{"not committed", order.Undecided(order.OutcomeNotCommitted, order.ErrUnavailable), 503, "UNAVAILABLE", "not_committed", true},
		{"queue full", order.Undecided(order.OutcomeNotCommitted, order.ErrOverloaded), 503, "OVERLOADED", "not_committed", true},
		{"shutting down", order.Undecided(order.OutcomeNotCommitted, order.ErrShuttingDown), 503, "UNAVAILABLE", "not_committed", true},
		{"internal", order.Undecided(order.OutcomeNotCommitted, order.ErrInternal), 500, "INTERNAL", "not_committed", false},
		{"bare", errors.New("boom at 10.0.0.7"), 500, "INTERNAL", "unknown", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			k.ledger.SetFault(func(*order.Command) error { return c.err })
			r := k.post(plain, key("k1"))
			p := r.problem(t)
			require.Equal(t, c.status, r.status)
			require.Equal(t, c.code, p.Code)
			require.Equal(t, c.outcome, p.Outcome)
			require.False(t, p.SafeNewKey)
			require.Equal(t, c.statusURL, p.StatusURL == "/api/requests/k1")
			require.Equal(t, c.status == 503, r.header.Get("Retry-After") == "1")
			require.NotContains(t, r.body, "10.0.0.7")
		})
	}
}

func TestAUserWithoutAnAccountIsForbidden(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	r := k.do(http.MethodPost, "/api/orders", plain, as("mallory"), key("k1"))
	p := r.problem(t)
	require.Equal(t, http.StatusForbidden, r.status)
	require.Equal(t, "USER_UNKNOWN", p.Code)
	require.Equal(t, "not_committed", p.Outcome)
}

func TestReplaysAreChargedLessThanOrders(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.tune(func(t *gateway.Tuning) { t.RatePerSecond, t.RateBurst = 0.001, 3 })
	require.Equal(t, http.StatusCreated, k.post(plain, key("k1")).status)
	for range 10 {
		require.Equal(t, "true", k.post(plain, key("k1")).header.Get("Idempotent-Replayed"))
	}
	r := k.post(plain, key("k2"))
	require.Equal(t, http.StatusCreated, r.status)
	r = k.post(plain, key("k3"))
	p := r.problem(t)
	require.Equal(t, http.StatusTooManyRequests, r.status)
	require.Equal(t, "RATE_LIMITED", p.Code)
	require.Equal(t, "not_committed", p.Outcome)
	require.True(t, p.Retryable)
	require.NotEmpty(t, r.header.Get("Retry-After"))
	require.Equal(t, http.StatusCreated, k.do(http.MethodPost, "/api/orders", plain, as("bob"), key("k1")).status)
	require.Equal(t, "NOT_FOUND", newKit(t).get("/api/requests/k3").problem(t).Code)
}

func TestRequestsInFlightAreBounded(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.tune(func(t *gateway.Tuning) { t.MaxInFlight = 1 })
	arrived := k.ledger.Block()
	first := make(chan reply, 1)
	go func() { first <- k.post(plain, key("k1")) }()
	<-arrived
	r := k.post(plain, key("k2"))
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Equal(t, "OVERLOADED", r.problem(t).Code)
	require.Equal(t, http.StatusOK, k.do(http.MethodGet, "/livez", "").status, "probes are not turned away")
	k.ledger.Release()
	require.Equal(t, http.StatusCreated, (<-first).status)
	require.Equal(t, http.StatusCreated, k.post(plain, key("k2")).status)
}

func TestWhatIsNotThereIsAProblemToo(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for _, c := range []struct {
		method, path string
		status       int
		allow        []string
	}{
		{http.MethodGet, "/", 404, nil},
		{http.MethodGet, "/api/orders/", 404, nil},
		{http.MethodGet, "/api/orders/not-an-id", 404, nil},
		{http.MethodGet, "/api/orders/01992F3E-5C1D-7A6B-8F00-3B1F6C2D9E10", 404, nil},
		{http.MethodPost, "//api/orders", 404, nil},
		{http.MethodGet, "/metrics", 404, nil},
		{http.MethodPut, "/admin/v1/users/alice", 404, nil},
		{http.MethodDelete, "/api/orders", 405, []string{"GET", "HEAD", "POST"}},
		{http.MethodOptions, "/api/orders", 405, []string{"GET", "HEAD", "POST"}},
		{http.MethodGet, "/order/create_user_order", 405, []string{"POST"}},
		{http.MethodPost, "/livez", 405, []string{"GET", "HEAD"}},
	} {
		r := k.do(c.method, c.path, "", as("alice"))
		r.problem(t)
		require.Equal(t, c.status, r.status, c.path)
		if c.allow != nil {
			require.ElementsMatch(t, c.allow, strings.Split(r.header.Get("Allow"), ", "))
		}
	}
}

func TestAPanicIsAnAnswerThatAdmitsIgnorance(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.ledger.SetFault(func(*order.Command) error { panic("boom") })
	r := k.post(plain, key("k1"))
	p := r.problem(t)
	require.Equal(t, http.StatusInternalServerError, r.status)
	require.Equal(t, "unknown", p.Outcome)
	require.True(t, p.Retryable)
	require.False(t, p.SafeNewKey)
	require.NotContains(t, r.body, "boom")
	require.Contains(t, k.logs.String(), "boom")
	k.ledger.SetFault(nil)
	require.Equal(t, 0, k.filter.Flights())
}

func TestAServerNeedsAllItsParts(t *testing.T) {
	t.Parallel()
	_, err := gateway.New(gateway.Options{})
	require.Error(t, err)
	_, err = gateway.NewAdmin(gateway.AdminOptions{})
	require.Error(t, err)
	k := newKit(t)
	_, err = gateway.NewMetrics(k.reg)
	require.Error(t, err, "twice on one registry")
	require.NoError(t, k.server.Shutdown(context.Background()), "a server that never listened")
}
