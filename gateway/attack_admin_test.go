package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// changes are the routes of the admin listener that change something.
func changes(id order.ID) map[string]string {
	return map[string]string{
		"/admin/v1/users/zoe":                         `{"balance":"1.00"}`,
		"/admin/v1/stock/potsticker":                  `{"available":1}`,
		"/admin/v1/orders/" + id.String() + "/ship":   `{}`,
		"/admin/v1/users/zoe?_method=PUT&balance=1":   "",
		"/admin/v1/stock/potsticker?available=1":      "",
		"/admin/v1/orders/" + id.String() + "/ship?x": "",
	}
}

func TestNothingChangesByARequestThatOnlyReads(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.place("k1")
	for path, body := range changes(id) {
		for _, method := range []string{http.MethodGet, http.MethodOptions, http.MethodTrace, "get", "PROPFIND"} {
			r := d.ask(here, method, path, body, with("Content-Type", "application/json"), with("X-Http-Method-Override", "PUT"))
			require.Equal(t, http.StatusMethodNotAllowed, r.status, "%s %s", method, path)
		}
		req := httptest.NewRequestWithContext(context.Background(), http.MethodHead, path, strings.NewReader(body))
		req.Host, req.RemoteAddr = "127.0.0.1:9090", here
		rec := httptest.NewRecorder()
		d.admin.Handler().ServeHTTP(rec, req)
		require.Equal(t, http.StatusMethodNotAllowed, rec.Code, path)
	}
	_, err := d.ledger.Balance(context.Background(), "zoe")
	require.ErrorIs(t, err, order.ErrNotFound)
	_, limited, err := d.ledger.Stock(context.Background(), "potsticker")
	require.NoError(t, err)
	require.False(t, limited)
	require.Equal(t, order.Pending, d.status(id))
}

func TestPagesOfOtherSitesGetNothing(t *testing.T) {
	t.Parallel()
	both := func(h http.Header) { h["Origin"] = []string{"http://127.0.0.1:9090", "https://evil.example"} }
	d := newDesk(t, func(o *gateway.AdminOptions) { o.AllowedHosts = []string{"Ops.Internal"} })
	id := d.place("k1")
	for name, c := range map[string]struct {
		headers []header
		allowed bool
	}{
		"an image of another site":      {[]header{with("Sec-Fetch-Site", "cross-site"), with("Sec-Fetch-Mode", "no-cors")}, false},
		"a page of another port":        {[]header{with("Sec-Fetch-Site", "same-site"), with("Origin", "http://127.0.0.1:8000")}, false},
		"a link of another site":        {[]header{with("Sec-Fetch-Site", "cross-site"), with("Sec-Fetch-Mode", "navigate")}, false},
		"no word that is known":         {[]header{with("Sec-Fetch-Site", "x")}, false},
		"another scheme's origin":       {[]header{with("Origin", "file://")}, false},
		"a sandboxed frame":             {[]header{with("Origin", "null")}, false},
		"two origins":                   {[]header{both}, false},
		"a rebound name":                {[]header{with("Host", "evil.example:9090"), with("Sec-Fetch-Site", "same-origin"), with("Origin", "http://evil.example:9090")}, false},
		"a name that looks like ours":   {[]header{with("Host", "localhost.evil.example")}, false},
		"a name that begins like an IP": {[]header{with("Host", "127.0.0.1.evil.example:9090")}, false},
		"credentials in the name":       {[]header{with("Host", "localhost@evil.example")}, false},
		"its own page":                  {[]header{with("Sec-Fetch-Site", "same-origin"), with("Origin", "http://127.0.0.1:9090")}, true},
		"typed by the operator":         {[]header{with("Sec-Fetch-Site", "none"), with("Sec-Fetch-Mode", "navigate")}, true},
		"a known name, other letters":   {[]header{with("Host", "ops.INTERNAL")}, true},
		"no browser":                    {nil, true},
	} {
		want := http.StatusOK
		if !c.allowed {
			want = http.StatusForbidden
		}
		for _, path := range []string{"/metrics", "/admin/v1/keys/alice/k1", "/debug/pprof/cmdline"} {
			require.Equal(t, want, d.ask(here, http.MethodGet, path, "", c.headers...).status, "%s: %s", name, path)
		}
		require.Equal(t, want, d.ask(here, http.MethodPut, "/admin/v1/users/bob", `{"balance":"7.00"}`, c.headers...).status, name)
		if !c.allowed {
			require.Equal(t, want, d.ask(here, http.MethodPost, "/admin/v1/orders/"+id.String()+"/ship", `{}`, c.headers...).status, name)
		}
	}
}

// Every change that the document names is made by another method than GET, and
// asking for it with GET is refused unless GET is named too.
func TestNoChangeOfTheDocumentIsMadeByGet(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	changing := 0
	for template, item := range document(t).Paths.Map() {
		if !strings.HasPrefix(template, "/admin") || item.Get != nil {
			continue
		}
		changing++
		path := strings.NewReplacer("{id}", "x", "{sku}", "x", "{user}", "x", "{key}", "x").Replace(template)
		r := d.ask(here, http.MethodGet, path, "")
		require.Contains(t, []int{http.StatusMethodNotAllowed, http.StatusNotFound}, r.status, path)
	}
	require.GreaterOrEqual(t, changing, 3)
}

// What a form or a script can send without asking first never has this type.
func TestFormsChangeNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.place("k1")
	for path, body := range changes(id) {
		for _, typ := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/csp-report"} {
			method := http.MethodPut
			if path == "/admin/v1/orders/"+id.String()+"/ship" || path == "/admin/v1/orders/"+id.String()+"/ship?x" {
				method = http.MethodPost
			}
			want := http.StatusUnsupportedMediaType
			if strings.Contains(path, "?") { // no change reads a query
				want = http.StatusBadRequest
			}
			r := d.ask(here, method, path, body, with("Content-Type", typ))
			require.Equal(t, want, r.status, "%s %q", path, typ)
		}
	}
	require.Equal(t, order.Pending, d.status(id))
}

func TestTheAdminListenerTakesAConnectionOfThisMachineOnlyWithoutAuthentication(t *testing.T) {
	t.Parallel()
	for addr, allowed := range map[string]bool{
		"127.0.0.1:0": true, "[::1]:0": true, "localhost:0": true, "127.9.9.9:0": true, "0.0.0.0:0": false, "[::]:0": false, ":0": false,
	} {
		d := newDesk(t, func(o *gateway.AdminOptions) { o.Addr, o.Auth = addr, nil })
		err := d.admin.Listen(context.Background())
		if !allowed {
			require.ErrorContains(t, err, "not a loopback address", addr)
			continue
		}
		if err != nil {
			require.NotContains(t, err.Error(), "loopback", addr) // a machine without IPv6
			continue
		}
		require.NoError(t, d.admin.Shutdown(context.Background()))
	}
}
