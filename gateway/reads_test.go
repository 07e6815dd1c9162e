package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

func TestPagesHoldEveryOrderOnceNewestFirst(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	require.JSONEq(t, `{"orders":[]}`, k.get("/api/orders").body)
	for i := range 7 {
		require.Equal(t, http.StatusCreated, k.post(plain, key(fmt.Sprint("k", i))).status)
	}
	var seen []string
	path, pages := "/api/orders?limit=3", 0
	for path != "" {
		var page struct {
			Orders []struct {
				OrderID string `json:"order_id"`
			}
			NextCursor string `json:"next_cursor"`
		}
		require.NoError(t, json.Unmarshal([]byte(k.get(path).body), &page))
		for _, o := range page.Orders {
			seen = append(seen, o.OrderID)
		}
		path, pages = "", pages+1
		if page.NextCursor != "" {
			path = "/api/orders?limit=3&cursor=" + page.NextCursor
		}
	}
	require.Equal(t, 3, pages)
	require.Len(t, seen, 7)
	for i := 1; i < len(seen); i++ {
		require.Greater(t, seen[i-1], seen[i])
	}
	for query, paths := range map[string][]string{
		"limit=0": {"limit"}, "limit=101": {"limit"}, "limit=x": {"limit"}, "limit=1&limit=2": {"limit"}, "limit=": {"limit"},
		"cursor=x": {"cursor"}, "cursor=": {"cursor"}, "cursor=x&limit=-1": {"limit", "cursor"},
	} {
		r := k.get("/api/orders?" + query)
		require.Equal(t, http.StatusBadRequest, r.status)
		require.Equal(t, paths, r.problem(t).paths(), query)
	}
}

func TestUsersAreStrangers(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	alice := k.post(potstick, key("shared"))
	bob := k.do(http.MethodPost, "/api/orders", potstick, as("bob"), key("shared"))
	require.Equal(t, http.StatusCreated, bob.status)
	require.Empty(t, bob.header.Get("Idempotent-Replayed"))
	require.NotEqual(t, alice.body, bob.body)

	location := alice.header.Get("Location")
	foreign := k.do(http.MethodGet, location, "", as("bob"))
	unknown := k.do(http.MethodGet, "/api/orders/"+order.NewID(time.Now()).String(), "", as("bob"))
	require.Equal(t, http.StatusNotFound, foreign.status)
	require.Equal(t, unknown.problem(t).Detail, foreign.problem(t).Detail)
	require.Len(t, foreign.body, len(unknown.body), "a foreign order looks like none")
	require.NotContains(t, k.do(http.MethodGet, "/api/orders", "", as("bob")).body, "alice")

	k.post(plain, key("only-alices"))
	theirs := k.do(http.MethodGet, "/api/requests/only-alices", "", as("bob"))
	nobodys := k.do(http.MethodGet, "/api/requests/never-used1", "", as("bob"))
	require.Equal(t, http.StatusNotFound, theirs.status)
	require.Len(t, theirs.body, len(nobodys.body), "a foreign key looks like one that was never used")
	other := k.do(http.MethodPost, "/api/orders", plain, as("bob"), key("only-alices"))
	require.Equal(t, http.StatusCreated, other.status)
}

func TestRequestStatusShowsTheRememberedAnswer(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for _, odd := range []string{"a+b", "a%2Fb", "a/b", "?x=1", "#", "{user}", "%", "a;b", "...", "~"} {
		first := k.post(plain, key(odd))
		require.Equal(t, http.StatusCreated, first.status, odd)
		u := "/api/requests/" + url.PathEscape(odd)
		r := k.get(u)
		require.Equal(t, http.StatusOK, r.status, odd)
		require.Contains(t, r.body, `"state":"succeeded"`)
		require.Contains(t, r.body, `"location":"`+first.header.Get("Location")+`"`)
		require.Contains(t, r.body, `"body":`+first.body)
	}
	refused := k.post(`{"sku":"a","quantity":1,"amount":5000}`, key("poor"))
	r := k.get("/api/requests/poor")
	require.Contains(t, r.body, `"state":"failed"`)
	require.Contains(t, r.body, `"body":`+refused.body)

	require.Equal(t, "IDEMPOTENCY_KEY_INVALID", k.get("/api/requests/a%2Cb").problem(t).Code)
	require.Equal(t, "NOT_FOUND", k.get("/api/requests/a/b").problem(t).Code, "an unescaped slash is another path")
	require.Equal(t, "NOT_FOUND", k.get("/api/requests/").problem(t).Code)
}

func TestReadsSayWhenTheyCannotBeDone(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.ledger.SetReadFault(func(string, order.Key) error { return order.ErrUnavailable })
	r := k.get("/api/requests/k1")
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Equal(t, "unknown", r.problem(t).Outcome)
	require.Equal(t, "1", r.header.Get("Retry-After"))

	k.tune(func(t *gateway.Tuning) { t.ReadBudget = -1 })
	require.Equal(t, "UNAVAILABLE", k.get("/api/orders").problem(t).Code)
	require.Equal(t, "UNAVAILABLE", k.get("/api/orders/"+order.NewID(time.Now()).String()).problem(t).Code)
}

func TestPolicyShowsTheSettingsInForce(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	require.JSONEq(t, `{"idempotency_key":{"header":"Idempotency-Key","pattern":"^[!#-+\\--\\[\\]-~]{1,255}$","required":true,"reused_status":409,"refusals_remembered":true},
		"limits":{"order_body_bytes":65536,"batch_body_bytes":524288,"batch_rows":500,"max_wait_seconds":10,"page_size":100},
		"windows":{"fast_window_seconds":86400,"response_retention_seconds":2592000,"key_retention":"as long as the order"}}`,
		k.do(http.MethodGet, "/api/policy", "").body)
	k.tune(func(t *gateway.Tuning) {
		t.ReusedStatus, t.KeyRequired, t.RatePerSecond, t.RateBurst = 422, false, 2.5, 10
	})
	r := k.do(http.MethodGet, "/api/policy", "")
	require.Contains(t, r.body, `"required":false,"reused_status":422`)
	require.Contains(t, r.body, `"rate_per_second":2.5,"rate_burst":10`)

	forgetting := newKit(t, func(o *gateway.Options) { o.ForgetRejections = true })
	require.Contains(t, forgetting.do(http.MethodGet, "/api/policy", "").body, `"refusals_remembered":false`)
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for _, path := range []string{"/livez", "/readyz", "/api/policy", "/api/orders", "/openapi.yaml"} {
		require.Equal(t, http.StatusOK, k.do(http.MethodHead, path, "", as("alice")).status, path)
	}
	require.Equal(t, http.StatusNotFound, k.do(http.MethodHead, "/nowhere", "").status)
}
