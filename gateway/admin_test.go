package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// desk is an admin listener on the fakes of a kit.
type desk struct {
	*kit
	admin *gateway.Admin
}

func newDesk(t testing.TB, change ...func(*gateway.AdminOptions)) *desk {
	t.Helper()
	return newDeskOn(t, newKit(t), change...)
}

func newDeskOn(t testing.TB, k *kit, change ...func(*gateway.AdminOptions)) *desk {
	t.Helper()
	o := gateway.AdminOptions{
		Addr: "127.0.0.1:0", Gatherer: k.reg,
		Desk:     gateway.Desk{Accounts: k.ledger, Shipper: k.ledger, Peeker: k.filter, Finder: k.ledger},
		Renderer: gateway.NewRenderer(""), Logger: slog.New(slog.NewJSONHandler(k.logs, nil)), Now: time.Now,
		Auth: verifier(t, time.Now), AllowLoopback: true, Budget: time.Minute,
	}
	for _, c := range change {
		c(&o)
	}
	a, err := gateway.NewAdmin(o)
	require.NoError(t, err)
	return &desk{k, a}
}

// ask sends a request as if from peer, and checks the answer.
func (d *desk) ask(peer, method, path, body string, headers ...header) reply {
	d.t.Helper()
	req := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	req.Host = "127.0.0.1:9090"
	req.RemoteAddr = peer
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		h(req.Header)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	rec := httptest.NewRecorder()
	d.admin.Handler().ServeHTTP(rec, req)
	r := reply{rec.Code, rec.Result().Header, rec.Body.String()}
	if !strings.HasPrefix(path, "/debug/") || r.status >= 400 {
		conforms(d.t, req, r)
	}
	return r
}

const (
	here      = "127.0.0.1:50000"
	elsewhere = "10.0.0.7:50000"
)

func TestOperatorsProvisionUsersAndStock(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := d.ask(here, http.MethodPut, "/admin/v1/users/carol", `{"balance":"100.5"}`)
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.JSONEq(t, `{"user_id":"carol","balance":"100.50"}`, r.body)
	balance, err := d.ledger.Balance(context.Background(), "carol")
	require.NoError(t, err)
	require.Equal(t, order.Amount(10050), balance)

	r = d.ask(here, http.MethodPut, "/admin/v1/stock/pot%2Fsticker", `{"available":100}`)
	require.JSONEq(t, `{"sku":"pot/sticker","available":100}`, r.body)
	available, limited, err := d.ledger.Stock(context.Background(), "pot/sticker")
	require.NoError(t, err)
	require.True(t, limited)
	require.Equal(t, int64(100), available)

	for path, paths := range map[string][]string{
		"/admin/v1/users/a%20b": {"id"}, "/admin/v1/users/carol": {"balance", "available"}, "/admin/v1/stock/%20a": {"sku"},
		"/admin/v1/stock/a": {"available"},
	} {
		r := d.ask(here, http.MethodPut, path, `{"available":-1}`)
		require.Equal(t, http.StatusBadRequest, r.status, path)
		require.ElementsMatch(t, paths, r.problem(t).paths(), path)
	}
	require.Equal(t, "BODY_TOO_LARGE", d.ask(here, http.MethodPut, "/admin/v1/stock/a", `{"available":1}`+strings.Repeat(" ", 5000)).problem(t).Code)
	require.Equal(t, "METHOD_NOT_ALLOWED", d.ask(here, http.MethodPost, "/admin/v1/stock/a", `{}`).problem(t).Code)
	require.Equal(t, "NOT_FOUND", d.ask(here, http.MethodGet, "/admin/v2", "").problem(t).Code)
}

func TestOperatorsAreToldOfParametersThatAreNotRead(t *testing.T) {
	t.Parallel()
	d := newWatched(t, func(o *gateway.AdminOptions) { o.Settings = &settingsFake{} })
	for _, c := range []struct{ method, target, body, path string }{
		{http.MethodPut, "/admin/v1/stock/a?dry_run=true", `{"available":1}`, "?dry_run"},
		{http.MethodPut, "/admin/v1/users/a?x", `{"balance":1}`, "?x"},
		{http.MethodGet, "/admin/v1/ttl?tlt=48h", "", "?tlt"},
		{http.MethodGet, "/admin/v1/ttl?target=0.5&target=0.9", "", "target"},
		{http.MethodGet, "/admin/v1/config/changes?limt=1", "", "?limt"},
		{http.MethodGet, "/admin/v1/config/changes?limit=1&limit=2", "", "limit"},
		{http.MethodGet, "/admin/v1/config/changes?limit=01", "", "limit"},
		{http.MethodGet, "/admin/v1/config/changes?limit=%2B1", "", "limit"},
		{http.MethodGet, "/admin/v1/config/changes?limit=1;x", "", "?"},
	} {
		r := d.ask(here, c.method, c.target, c.body)
		require.Equal(t, http.StatusBadRequest, r.status, c.target)
		require.Equal(t, []string{c.path}, r.problem(t).paths(), c.target)
	}
	require.Equal(t, "METHOD_NOT_ALLOWED", d.ask(here, http.MethodPut, "/metrics?x", `{}`).problem(t).Code)
	require.Equal(t, "NOT_FOUND", d.ask(here, http.MethodPut, "/admin/v2?x", `{}`).problem(t).Code)
	require.Equal(t, http.StatusOK, d.ask(here, http.MethodGet, "/metrics?name[]=go_goroutines", "").status, "its parameters are not ours")
	require.Equal(t, http.StatusOK, d.ask(here, http.MethodGet, "/admin/v1/config/changes?limit=1", "").status)
}

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	admin, orders := as("ops", gateway.ScopeAdmin), as("alice", gateway.ScopeOrders)
	for _, c := range []struct {
		name          string
		peer          string
		headers       []header
		allowLoopback bool
		openMetrics   bool
		metrics, read int
	}{
		{"loopback, allowed", here, nil, true, false, 200, 200},
		{"loopback, not allowed", here, nil, false, false, 401, 401},
		{"loopback, not allowed, open metrics", here, nil, false, true, 200, 401},
		{"IPv6 loopback", "[::1]:1", nil, true, false, 200, 200},
		{"mapped loopback", "[::ffff:127.0.0.1]:1", nil, true, false, 200, 200},
		{"elsewhere", elsewhere, nil, true, false, 401, 401},
		{"elsewhere, open metrics", elsewhere, nil, true, true, 200, 401},
		{"elsewhere, token", elsewhere, []header{admin}, false, false, 200, 200},
		{"elsewhere, wrong scope", elsewhere, []header{orders}, false, false, 403, 403},
		{"loopback, wrong scope", here, []header{orders}, true, false, 403, 403},
		{"loopback, bad token", here, []header{with("Authorization", "Bearer x")}, true, false, 401, 401},
		{"through a proxy here", here, []header{with("X-Forwarded-For", "10.0.0.7")}, true, false, 401, 401},
		{"through another proxy here", here, []header{with("Forwarded", "for=10.0.0.7")}, true, false, 401, 401},
		{"rebound name", here, []header{with("Host", "evil.example:9090")}, true, true, 403, 403},
		{"rebound name, token", here, []header{with("Host", "evil.example:9090"), admin}, true, true, 403, 403},
		{"known name", here, []header{with("Host", "ops.internal:9090")}, true, false, 200, 200},
		{"localhost", here, []header{with("Host", "LOCALHOST")}, true, false, 200, 200},
		{"IPv6 host", here, []header{with("Host", "[::1]:9090")}, true, false, 200, 200},
		{"other origin", here, []header{with("Origin", "https://evil.example")}, true, true, 403, 403},
		{"origin null", here, []header{with("Origin", "null")}, true, true, 403, 403},
		{"own origin", here, []header{with("Origin", "http://127.0.0.1:9090")}, true, false, 200, 200},
	} {
		d := newDesk(t, func(o *gateway.AdminOptions) {
			o.AllowLoopback, o.OpenMetrics, o.AllowedHosts = c.allowLoopback, c.openMetrics, []string{"ops.internal"}
		})
		require.Equal(t, c.metrics, d.ask(c.peer, http.MethodGet, "/metrics", "", c.headers...).status, c.name)
		require.Equal(t, c.read, d.ask(c.peer, http.MethodGet, "/admin/v1/keys/alice/k", "", c.headers...).status, c.name)
		require.Equal(t, c.read, d.ask(c.peer, http.MethodGet, "/debug/pprof/cmdline", "", c.headers...).status, c.name)
		write := d.ask(c.peer, http.MethodPut, "/admin/v1/users/zoe", `{"balance":1}`, c.headers...)
		require.Equal(t, c.read, write.status, c.name)
		if _, err := d.ledger.Balance(context.Background(), "zoe"); c.read != http.StatusOK {
			require.ErrorIs(t, err, order.ErrNotFound, c.name)
		}
	}
}

func TestAPageOfAnotherSiteCannotWrite(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, typ := range []string{"text/plain", "application/x-www-form-urlencoded", ""} {
		r := d.ask(here, http.MethodPut, "/admin/v1/users/zoe", `{"balance":1}`, with("Content-Type", typ))
		require.Equal(t, http.StatusUnsupportedMediaType, r.status)
	}
}

func TestInspectionShowsEachLayerAndNoBody(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	require.JSONEq(t, `{"user_id":"alice","layers":[]}`, d.ask(here, http.MethodGet, "/admin/v1/keys/alice/a%2Fb", "").body)
	first := d.post(potstick, key("a/b"))
	d.filter.SetDown(true)
	require.Contains(t, d.ask(here, http.MethodGet, "/admin/v1/keys/alice/a%2Fb", "").body, `{"layer":"redis","state":"unavailable"},{"layer":"mysql","state":"succeeded",`)
	d.filter.SetDown(false)
	r := d.ask(here, http.MethodGet, "/admin/v1/keys/alice/a%2Fb", "")
	require.Contains(t, r.body, `{"layer":"redis","state":"succeeded","digest":"`)
	require.Contains(t, r.body, `{"layer":"mysql","state":"succeeded","digest":"`)
	require.Contains(t, r.body, `"location":"`+first.header.Get("Location")+`"`)
	require.NotContains(t, r.body, "potsticker")

	d.filter.PutMark("alice", "m", order.Digest{1}, time.Now())
	d.ledger.SetReadFault(func(string, order.Key) error { return order.ErrUnavailable })
	r = d.ask(here, http.MethodGet, "/admin/v1/keys/alice/m", "")
	require.Contains(t, r.body, `"layer":"redis","state":"in_progress","age_ms":`)
	require.Contains(t, r.body, `{"layer":"mysql","state":"unavailable"}`)
	require.Equal(t, http.StatusBadRequest, d.ask(here, http.MethodGet, "/admin/v1/keys/alice/a%2Cb", "").status)
	require.Equal(t, http.StatusBadRequest, d.ask(here, http.MethodGet, "/admin/v1/keys/al%20ice/a", "").status)
}

// TestALookUpNamesTheLinesOfTheLog: what an operator finds there are the attempts
// with this key.
func TestALookUpNamesTheLinesOfTheLog(t *testing.T) {
	t.Parallel()
	secret := []byte("a key for hashes in the log")
	k := newKit(t, func(o *gateway.Options) { o.LogHashKey = secret })
	d := newDeskOn(t, k, func(o *gateway.AdminOptions) { o.LogHashKey = secret })
	for range 3 {
		d.post(potstick, key("dinner"))
	}
	var found struct {
		KeyHash string `json:"key_hash"`
		Client  string
	}
	require.NoError(t, json.Unmarshal([]byte(d.ask(here, http.MethodGet, "/admin/v1/keys/alice/dinner", "").body), &found))
	require.Regexp(t, `^[0-9a-f]{12}$`, found.KeyHash)
	require.NotEmpty(t, found.Client)
	require.Equal(t, 3, strings.Count(k.logs.String(), `"key_hash":"`+found.KeyHash+`"`), "a line per attempt")
	var other struct {
		KeyHash string `json:"key_hash"`
	}
	require.NoError(t, json.Unmarshal([]byte(d.ask(here, http.MethodGet, "/admin/v1/keys/bob/dinner", "").body), &other))
	require.NotEqual(t, found.KeyHash, other.KeyHash)
}

func TestMetricsAreServed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	require.Contains(t, d.ask(here, http.MethodGet, "/metrics", "").body, "oncegate_decision_duration_seconds_bucket")
}

func TestAnOpenAddressNeedsAuthentication(t *testing.T) {
	t.Parallel()
	port := reserved(t)
	open := newDesk(t, func(o *gateway.AdminOptions) { o.Addr, o.Auth = fmt.Sprint("0.0.0.0:", port.Number()), nil })
	require.ErrorContains(t, open.admin.Listen(context.Background()), "not a loopback address")
	_, err := net.Dial("tcp", port.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	guarded := newDesk(t, func(o *gateway.AdminOptions) { o.Addr = "0.0.0.0:0" })
	require.NoError(t, guarded.admin.Listen(context.Background()))
	require.NoError(t, guarded.admin.Shutdown(context.Background()))

	local := newDesk(t, func(o *gateway.AdminOptions) { o.Auth = nil })
	require.NoError(t, local.admin.Listen(context.Background()))
	served := make(chan error, 1)
	go func() { served <- local.admin.Serve() }()
	resp, err := http.Get("http://" + local.admin.Addr().String() + "/metrics")
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, local.admin.Shutdown(context.Background()))
	require.NoError(t, <-served)
}

func TestAProfileDoesNotHoldTheStopUp(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/debug/pprof/profile", "/debug/pprof/trace", "/debug/pprof/heap"} {
		d := newDesk(t)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			req := httptest.NewRequestWithContext(context.Background(), http.MethodGet, path+"?seconds=100", http.NoBody)
			req.Host, req.RemoteAddr = "127.0.0.1:9090", here
			d.admin.Handler().ServeHTTP(httptest.NewRecorder(), req)
		}()
		require.NoError(t, d.admin.Shutdown(context.Background()))
		select {
		case <-ended:
		case <-time.After(time.Minute):
			require.FailNow(t, "the profile goes on", path)
		}
	}
}

func TestAProfileHasAnEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, path := range []string{"/debug/pprof/profile", "/debug/pprof/trace", "/debug/pprof/heap", "/debug/pprof/goroutine"} {
		for _, seconds := range []string{"120", "100000", "1e9", "1e999", "Inf", "NaN"} {
			r := d.ask(here, http.MethodGet, path+"?seconds="+seconds, "")
			require.Equal(t, http.StatusBadRequest, r.status, path+seconds)
			require.Equal(t, []string{"seconds"}, r.problem(t).paths())
		}
	}
}

func TestAPanicOfTheAdminListenerIsAnAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *gateway.AdminOptions) {
		o.Gatherer = prometheus.GathererFunc(nil)
	})
	r := d.ask(here, http.MethodGet, "/metrics", "")
	require.Equal(t, http.StatusInternalServerError, r.status)
	require.Equal(t, "INTERNAL", r.problem(t).Code)
	require.Contains(t, d.logs.String(), "panic")
}
