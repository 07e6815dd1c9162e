package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
)

const (
	secret        = "a secret for tests, 32 bytes long"
	audience      = "oncegate"
	issuer        = "tests"
	webhookSecret = "whsec_bmV3IHNlY3JldCBvZiB0aGUgcHJvdmlkZXIh"
	rotatedSecret = "b2xkIHNlY3JldCBvZiB0aGUgcHJvdmlkZXIh"
	potstick      = `{"sku":"potsticker","quantity":2,"amount":"39.80","external_order_no":"B-1"}`
	plain         = `{"sku":"potsticker","quantity":2,"amount":"39.80"}`
)

// kit is a whole gateway on in-memory fakes, asked through a client that holds
// every answer against the OpenAPI document.
type kit struct {
	t      testing.TB
	ledger *ordertest.Ledger
	filter *ordertest.Filter
	intake *order.Intake
	server *gateway.Server
	health *gateway.Health
	tuning atomic.Pointer[gateway.Tuning]
	budget atomic.Int64
	reg    *prometheus.Registry
	url    string
	logs   *testserver.Output
	broken [2]atomic.Pointer[error] // what the checks of MySQL and Redis say
}

func newKit(t testing.TB, change ...func(*gateway.Options)) *kit {
	t.Helper()
	k := &kit{t: t, logs: &testserver.Output{}, reg: prometheus.NewRegistry()}
	tuning := gateway.DefaultTuning()
	tuning.ReadBudget, tuning.ChangeBudget = time.Minute, time.Minute // like the one below
	k.tuning.Store(&tuning)
	k.budget.Store(int64(time.Minute)) // longer than any stall of a busy machine
	renderer := gateway.NewRenderer("")
	k.ledger = ordertest.NewLedger(renderer, time.Now)
	k.filter = ordertest.NewFilter(time.Now)
	metrics, err := gateway.NewMetrics(k.reg)
	require.NoError(t, err)
	k.intake = order.NewIntake(order.Options{
		Filter: k.filter, Ledger: k.ledger, Deferrals: k.ledger, Observer: metrics, Now: time.Now,
		Tuning: func() order.Tuning {
			return order.Tuning{Budget: time.Duration(k.budget.Load()), InProgressGrace: 2 * time.Second, MaxWait: 10 * time.Second}
		},
	})
	log := slog.New(slog.NewJSONHandler(k.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	k.health = gateway.NewHealth(gateway.HealthOptions{
		Checks: []gateway.Check{
			{Name: "mysql", Critical: true, Func: func(context.Context) error { return k.check(0) }},
			{Name: "redis", Func: func(context.Context) error { return k.check(1) }},
		},
		Now: time.Now, Logger: log, TTL: time.Nanosecond,
	})
	spec, err := os.ReadFile("../api/openapi.yaml")
	require.NoError(t, err)
	webhooks, err := gateway.NewWebhooks([]string{webhookSecret, rotatedSecret})
	require.NoError(t, err)
	o := gateway.Options{
		Addr: "127.0.0.1:0", Submitter: k.intake, Book: k.ledger, Lifecycle: k.ledger, Webhooks: webhooks, Auth: verifier(t, time.Now), Renderer: renderer,
		Metrics: metrics, Health: k.health, Logger: log, Now: time.Now,
		Tuning: func() gateway.Tuning { return *k.tuning.Load() }, Spec: spec,
	}
	for _, c := range change {
		c(&o)
	}
	k.server, err = gateway.New(o)
	require.NoError(t, err)
	web := httptest.NewServer(k.server.Handler())
	t.Cleanup(web.Close)
	k.url = web.URL
	for _, user := range []string{"alice", "bob"} {
		require.NoError(t, k.ledger.SetBalance(context.Background(), user, 1_000_00))
	}
	return k
}

func (k *kit) check(i int) error {
	if err := k.broken[i].Load(); err != nil {
		return *err
	}
	return nil
}

// tune changes the settings in force.
func (k *kit) tune(change func(*gateway.Tuning)) {
	t := *k.tuning.Load()
	change(&t)
	k.tuning.Store(&t)
}

func verifier(t testing.TB, now func() time.Time) *gateway.TokenVerifier {
	t.Helper()
	keys, err := gateway.HS256Keys([]byte(secret))
	require.NoError(t, err)
	v, err := gateway.NewTokenVerifier(gateway.TokenOptions{
		Keys: keys, Algorithms: []string{"HS256"}, Audience: audience, Issuer: issuer, Now: now,
	})
	require.NoError(t, err)
	return v
}

// reply is one checked answer.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) problem(t testing.TB) problemDoc {
	t.Helper()
	require.Equal(t, "application/problem+json", r.header.Get("Content-Type"), r.body)
	var p problemDoc
	require.NoError(t, json.Unmarshal([]byte(r.body), &p))
	require.Equal(t, r.status, p.Status)
	return p
}

type problemDoc struct {
	Type, Title, Detail, Code, Outcome string
	Status                             int
	Retryable                          bool
	SafeNewKey                         bool   `json:"safe_new_key"`
	RequestID                          string `json:"request_id"`
	StatusURL                          string `json:"status_url"`
	RetryAfterMS                       int    `json:"retry_after_ms"`
	Errors                             []struct{ Path, Reason string }
	Conflicts                          []struct {
		Row             int
		ExternalOrderNo string `json:"external_order_no"`
		Reason          string
		OrderID         string `json:"order_id"`
		Fields          []string
	}
}

func (p problemDoc) paths() []string {
	var paths []string
	for _, e := range p.Errors {
		paths = append(paths, e.Path)
	}
	return paths
}

// header changes a request before it is sent.
type header func(http.Header)

func as(user string, scopes ...string) header {
	if len(scopes) == 0 {
		scopes = []string{gateway.ScopeOrders}
	}
	return func(h http.Header) { h.Set("Authorization", "Bearer "+mint(user, scopes...)) }
}

func mint(user string, scopes ...string) string {
	signed, err := gateway.MintToken([]byte(secret), gateway.TokenSpec{
		UserID: user, Scopes: scopes, Audience: audience, Issuer: issuer, IssuedAt: time.Now(), TTL: time.Hour,
	})
	if err != nil {
		panic(err)
	}
	return signed
}

func key(values ...string) header {
	return func(h http.Header) { h["Idempotency-Key"] = values }
}

func with(name, value string) header {
	return func(h http.Header) { h.Set(name, value) }
}

// do sends a request and checks the answer against the OpenAPI document.
func (k *kit) do(method, path, body string, headers ...header) reply {
	k.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, k.url+path, strings.NewReader(body))
	require.NoError(k.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		h(req.Header)
	}
	return send(k.t, req)
}

func (k *kit) post(body string, headers ...header) reply {
	k.t.Helper()
	return k.do(http.MethodPost, "/api/orders", body, append([]header{as("alice")}, headers...)...)
}

func (k *kit) get(path string, headers ...header) reply {
	k.t.Helper()
	return k.do(http.MethodGet, path, "", append([]header{as("alice")}, headers...)...)
}

// batch sends a batch of alice's.
func (k *kit) batch(body string, headers ...header) reply {
	k.t.Helper()
	return k.do(http.MethodPost, "/api/order-batches", body, append([]header{as("alice")}, headers...)...)
}

// place makes an order of alice's for 39.80 and returns its id.
func (k *kit) place(idempotencyKey string) order.ID {
	k.t.Helper()
	r := k.post(plain, key(idempotencyKey))
	require.Equal(k.t, http.StatusCreated, r.status, r.body)
	id, err := order.ParseID(strings.TrimPrefix(r.header.Get("Location"), "/api/orders/"))
	require.NoError(k.t, err)
	return id
}

// status reads the state of an order of alice's.
func (k *kit) status(id order.ID) order.Status {
	k.t.Helper()
	o, err := k.ledger.Order(context.Background(), "alice", id)
	require.NoError(k.t, err)
	return o.Status
}

func send(t testing.TB, req *http.Request) reply {
	t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	r := reply{resp.StatusCode, resp.Header, string(body)}
	conforms(t, req, r)
	return r
}
