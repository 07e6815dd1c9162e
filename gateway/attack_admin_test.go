package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// change is a request that changes something.
type change struct {
	method, path, body string
	readable           bool // there is something to read at its path
}

// changingDesk is a desk that has every route that changes something.
func changingDesk(t *testing.T) *desk {
	t.Helper()
	return newDesk(t, func(o *gateway.AdminOptions) { o.Settings = &settingsFake{} })
}

// changes are what the admin listener does that changes something, all of it.
func (d *desk) changes(id order.ID) []change {
	d.t.Helper()
	known := map[string]change{
		"/admin/v1/users/{id}":       {path: "/admin/v1/users/zoe", body: `{"balance":"1.00"}`},
		"/admin/v1/stock/{sku}":      {path: "/admin/v1/stock/potsticker", body: `{"available":1}`},
		"/admin/v1/orders/{id}/ship": {path: "/admin/v1/orders/" + id.String() + "/ship", body: `{}`},
		"/admin/v1/config/{name}":    {path: receiptTTL, body: longer},
	}
	routes := d.admin.Routes()
	var all []change
	for _, r := range routes {
		if r.Method == http.MethodGet {
			continue
		}
		require.Contains(d.t, known, r.Path, "a change that is not tried")
		c := known[r.Path]
		c.method, c.readable = r.Method, slices.Contains(routes, gateway.Route{Method: http.MethodGet, Path: r.Path})
		all = append(all, c)
	}
	require.Len(d.t, all, len(known))
	return all
}

// current is what If-Match says of settings that were never changed.
func current() header { return with("If-Match", `"0"`) }

// untouched wants that none of the changes was made.
func (d *desk) untouched(id order.ID) {
	d.t.Helper()
	_, err := d.ledger.Balance(context.Background(), "zoe")
	require.ErrorIs(d.t, err, order.ErrNotFound)
	_, limited, err := d.ledger.Stock(context.Background(), "potsticker")
	require.NoError(d.t, err)
	require.False(d.t, limited)
	require.Equal(d.t, order.Pending, d.status(id))
	require.JSONEq(d.t, `{"changes":[]}`, d.ask(here, http.MethodGet, "/admin/v1/config/changes", "").body)
}

func TestNothingChangesByARequestThatOnlyReads(t *testing.T) {
	t.Parallel()
	d := changingDesk(t)
	id := d.place("k1")
	for _, c := range d.changes(id) {
		for path, reads := range map[string]int{
			c.path: http.StatusOK,
			c.path + "?_method=" + c.method + "&balance=1&available=1&value=48h": http.StatusBadRequest,
		} {
			if !c.readable {
				reads = http.StatusMethodNotAllowed
			}
			for _, method := range []string{http.MethodGet, http.MethodOptions, http.MethodTrace, "get", "PROPFIND"} {
				want := http.StatusMethodNotAllowed
				if method == http.MethodGet {
					want = reads
				}
				r := d.ask(here, method, path, c.body, with("Content-Type", "application/json"), with("X-Http-Method-Override", c.method), current())
				require.Equal(t, want, r.status, "%s %s", method, path)
			}
			req := httptest.NewRequestWithContext(context.Background(), http.MethodHead, path, strings.NewReader(c.body))
			req.Host, req.RemoteAddr = "127.0.0.1:9090", here
			rec := httptest.NewRecorder()
			d.admin.Handler().ServeHTTP(rec, req)
			require.Equal(t, reads, rec.Code, path)
		}
	}
	d.untouched(id)
}

func TestPagesOfOtherSitesGetNothing(t *testing.T) {
	t.Parallel()
	both := func(h http.Header) { h["Origin"] = []string{"http://127.0.0.1:9090", "https://evil.example"} }
	d := newWatched(t, func(o *gateway.AdminOptions) {
		o.Settings, o.AllowedHosts = &settingsFake{}, []string{"Ops.Internal"}
	})
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
		if c.allowed {
			continue
		}
		for _, r := range d.admin.Routes() { // reads too: a profile, or a stream of events
			require.Equal(t, want, d.ask(here, r.Method, sampleOf(r.Path), "", c.headers...).status, "%s: %v", name, r)
		}
		for _, full := range d.changes(id) {
			require.Equal(t, want, d.ask(here, full.method, full.path, full.body, append(c.headers, current())...).status, "%s: %s", name, full.path)
		}
	}
	d.untouched(id)
	for _, c := range d.changes(id) { // what was refused is refused for where it came from only
		want := http.StatusOK
		if strings.HasSuffix(c.path, "/ship") { // it is not paid
			want = http.StatusConflict
		}
		require.Equal(t, want, d.ask(here, c.method, c.path, c.body, current()).status, c.path)
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
	d := changingDesk(t)
	id := d.place("k1")
	for _, c := range d.changes(id) {
		for path, want := range map[string]int{
			c.path:        http.StatusUnsupportedMediaType,
			c.path + "?x": http.StatusBadRequest, // no change reads a query
		} {
			for _, typ := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/csp-report"} {
				r := d.ask(here, c.method, path, c.body, with("Content-Type", typ), current())
				require.Equal(t, want, r.status, "%s %q", path, typ)
			}
		}
	}
	d.untouched(id)
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
