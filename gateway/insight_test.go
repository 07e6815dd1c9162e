package gateway_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/insight"
	"github.com/oncegate/oncegate/order"
)

// watched is a desk whose gateway reports to a recorder.
type watched struct {
	*desk
	recorder *insight.Recorder
	stop     func()
}

func newWatched(t testing.TB, change ...func(*gateway.AdminOptions)) *watched {
	t.Helper()
	r, err := insight.New(insight.Options{
		Now: time.Now, Logger: slog.New(slog.DiscardHandler), ReceiptTTL: func() time.Duration { return 24 * time.Hour },
		State: func(context.Context) insight.State {
			return insight.State{Redis: "ok", MySQL: "ok", Config: &insight.ConfigVersion{Version: 3, ChangedAt: time.Now(), ChangedBy: "ann"}}
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	w := &watched{recorder: r, stop: sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})}
	t.Cleanup(w.stop)
	change = append([]func(*gateway.AdminOptions){func(o *gateway.AdminOptions) { o.Insight = r }}, change...)
	w.desk = newDeskOn(t, newKit(t, func(o *gateway.Options) { o.Conflicts = r.Conflicted }), change...)
	return w
}

func TestOfSettingsThatWereNeverChangedOnlyTheVersionIsTold(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(insight.State{Config: &insight.ConfigVersion{}})
	require.NoError(t, err)
	require.JSONEq(t, `{"redis":"","mysql":"","config":{"version":0}}`, string(b))
}

func TestStatsAndForecastsAreAnswered(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	w.recorder.Decided(order.Answer{Kind: order.Created, Layer: order.LayerLedger}, nil, time.Millisecond)
	w.recorder.Decided(order.Answer{Kind: order.Replayed, Layer: order.LayerRedis, Age: 3 * time.Second}, nil, time.Millisecond)
	r := w.ask(here, http.MethodGet, "/admin/v1/stats", "")
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.Contains(t, r.body, `"received":2,"process":0,"redis":1`)
	require.Contains(t, r.body, `"config":{"version":3,`)
	require.Equal(t, "no-store", r.header.Get("Cache-Control"))

	r = w.ask(here, http.MethodGet, "/admin/v1/ttl?ttl=48h&ttl=7d&target=0.5", "")
	var got insight.TTL
	require.NoError(t, json.Unmarshal([]byte(r.body), &got))
	require.Equal(t, uint64(1), got.Retries.Count)
	require.Len(t, got.Forecasts, 2)
	require.InDelta(t, (7 * 24 * time.Hour).Seconds(), got.Forecasts[1].TTLSeconds, 0)
	require.NotNil(t, got.Knee)
	require.Len(t, decodeTTL(t, w.ask(here, http.MethodGet, "/admin/v1/ttl", "").body).Forecasts, 15)

	for query, path := range map[string]string{
		"ttl=soon": "ttl[0]", "ttl=1h&ttl=-1s": "ttl[1]", "ttl=0s": "ttl[0]", "ttl=1000d": "ttl[0]", "ttl=xd": "ttl[0]",
		"target=2": "target", "target=0": "target", "target=NaN": "target", "target=much": "target", strings.Repeat("ttl=1h&", 65): "ttl",
	} {
		r := w.ask(here, http.MethodGet, "/admin/v1/ttl?"+query, "")
		require.Equal(t, http.StatusBadRequest, r.status, query)
		require.Equal(t, []string{path}, r.problem(t).paths(), query)
	}
}

func decodeTTL(t *testing.T, body string) (got insight.TTL) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	return got
}

func TestConflictsAreToldWithoutUserKeyOrBody(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	require.JSONEq(t, `{"conflicts":[]}`, w.ask(here, http.MethodGet, "/admin/v1/conflicts", "").body)
	agent := with("User-Agent", "storefront/4.2 (iOS; alice's phone)")
	w.post(potstick, key("dinner-1"), agent)
	w.post(potstick, key("dinner-1"), agent) // a retry is no conflict
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", w.post(plain, key("dinner-1"), agent).problem(t).Code)
	require.Equal(t, "ORDER_ALREADY_EXISTS", w.post(potstick, key("dinner-2"), agent).problem(t).Code)
	require.Equal(t, "ORDER_ALREADY_EXISTS", w.post(potstick, key("dinner-2"), agent).problem(t).Code, "replayed: told once")
	w.post(plain, key("dinner-1"), as("bob"), with("User-Agent", "a"+strings.Repeat("b", 50)))
	w.post(potstick, key("dinner-1"), as("bob"), with("User-Agent", "naïve"))

	r := w.ask(here, http.MethodGet, "/admin/v1/conflicts", "")
	var got struct{ Conflicts []insight.Conflict }
	require.NoError(t, json.Unmarshal([]byte(r.body), &got))
	require.Len(t, got.Conflicts, 3)
	bob, number, reused := got.Conflicts[0], got.Conflicts[1], got.Conflicts[2]
	require.Equal(t, []string{"IDEMPOTENCY_KEY_REUSED", "redis", "storefront/4.2"}, []string{reused.Code, reused.Reason, reused.Agent})
	require.Equal(t, []string{"ORDER_ALREADY_EXISTS", "exists", "storefront/4.2"}, []string{number.Code, number.Reason, number.Agent})
	require.Equal(t, number.Client, reused.Client)
	require.NotEqual(t, bob.Client, reused.Client)
	require.Empty(t, bob.Agent)
	for _, word := range []string{"alice", "bob", "dinner", "potsticker", "phone"} {
		require.NotContains(t, r.body, word)
	}
}

func TestMovesOfTheBreakerAreListed(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	require.JSONEq(t, `{"transitions":[]}`, w.ask(here, http.MethodGet, "/admin/v1/breaker", "").body)
	w.recorder.BreakerMoved("closed", "open", "timeout")
	w.recorder.BreakerMoved("open", "half-open", "")
	r := w.ask(here, http.MethodGet, "/admin/v1/breaker", "")
	require.Regexp(t, `"from":"open","to":"half-open".*"from":"closed","to":"open","reason":"timeout"`, r.body)
}

func TestWithoutInsightThereIsNoConsole(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, path := range []string{"/", "/console/app.js", "/admin/v1/stats", "/admin/v1/events"} {
		require.Equal(t, http.StatusNotFound, d.ask(here, http.MethodGet, path, "").status, path)
	}
}

func TestObservationIsForOperators(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	for _, path := range []string{"stats", "events", "conflicts", "breaker", "ttl"} {
		require.Equal(t, http.StatusUnauthorized, w.ask(elsewhere, http.MethodGet, "/admin/v1/"+path, "").status, path)
		require.Equal(t, http.StatusForbidden, w.ask(elsewhere, http.MethodGet, "/admin/v1/"+path, "", as("alice")).status, path)
		require.Equal(t, http.StatusMethodNotAllowed, w.ask(here, http.MethodPost, "/admin/v1/"+path, "{}").status, path)
	}
}
