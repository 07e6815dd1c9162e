package gateway_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
)

func newDemoKit(t *testing.T) *kit {
	t.Helper()
	return newKit(t, func(o *gateway.Options) {
		o.Demo = &gateway.Demo{
			Files: fstest.MapFS{"index.html": {Data: []byte("<title>demo</title>")}, "a.js": {Data: []byte("1")}},
			Token: func(user string) (string, error) { return "token of " + user, nil },
		}
	})
}

// visit asks for a page, which the OpenAPI document knows nothing of.
func (k *kit) visit(method, path string, headers ...header) reply {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.t.Context(), method, k.url+path, http.NoBody)
	require.NoError(k.t, err)
	for _, h := range headers {
		h(req.Header)
	}
	req.Host = req.Header.Get("Host")
	req.Header.Del("Host")
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(k.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(k.t, err)
	return reply{resp.StatusCode, resp.Header, string(body)}
}

func TestDemoServesItsFilesUnderAStrictPolicy(t *testing.T) {
	t.Parallel()
	k := newDemoKit(t)
	for path, contentType := range map[string]string{"/demo": "text/html", "/demo/a.js": "text/javascript"} {
		r := k.visit(http.MethodGet, path)
		require.Equal(t, http.StatusOK, r.status)
		require.Contains(t, r.header.Get("Content-Type"), contentType)
		policy := r.header.Get("Content-Security-Policy")
		require.True(t, strings.HasPrefix(policy, "default-src 'none'; script-src 'self';"), policy)
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, "nosniff", r.header.Get("X-Content-Type-Options"))
	}
	for _, path := range []string{"/demo/b.js", "/demo/..%2Fsecret", "/demo/.", "/demo/"} {
		require.Equal(t, http.StatusNotFound, k.visit(http.MethodGet, path).status, path)
	}
}

func TestDemoSignsInVisitorsOfThisMachineOnly(t *testing.T) {
	t.Parallel()
	k := newDemoKit(t)
	r := k.visit(http.MethodPost, "/demo/session")
	require.Regexp(t, `^\{"user":"demo-[A-Z2-7]{26}","token":"token of demo-[A-Z2-7]{26}"\}$`, r.body)
	require.Equal(t, "no-store", r.header.Get("Cache-Control"))

	back := "demo-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	require.Contains(t, k.visit(http.MethodPost, "/demo/session?user="+back).body, `"token of `+back+`"`)
	require.Equal(t, http.StatusBadRequest, k.visit(http.MethodPost, "/demo/session?user=alice").status, "nobody can be somebody else")
	require.Equal(t, http.StatusMethodNotAllowed, k.visit(http.MethodDelete, "/demo/session").status)
	require.Equal(t, http.StatusForbidden, k.visit(http.MethodPost, "/demo/session", with("Sec-Fetch-Site", "cross-site")).status)
	for _, path := range []string{"/demo/session", "/demo"} {
		method := map[bool]string{true: http.MethodPost, false: http.MethodGet}[path == "/demo/session"]
		require.Equal(t, http.StatusNotFound, k.visit(method, path, with("X-Forwarded-For", "203.0.113.7")).status,
			"what a proxy passes on does not come from this machine")
	}
}

func TestDemoGoesByTheNamesOfThisMachineOnly(t *testing.T) {
	t.Parallel()
	k := newDemoKit(t)
	for host, known := range map[string]bool{
		"127.0.0.1:8080": true, "localhost": true, "LOCALHOST:8080": true, "[::1]:8080": true,
		"rebound.example": false, "shop.example:8080": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false,
	} {
		for path, method := range map[string]string{"/demo": http.MethodGet, "/demo/a.js": http.MethodGet, "/demo/session": http.MethodPost} {
			want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[known]
			require.Equal(t, want, k.visit(method, path, with("Host", host)).status, "%s %s", host, path)
		}
	}
	require.Equal(t, http.StatusForbidden, k.visit(http.MethodPost, "/demo/session", with("Host", "127.0.0.1:8080"),
		with("Origin", "https://shop.example")).status, "a proxy that says nothing of itself")
	require.Equal(t, http.StatusOK, k.visit(http.MethodPost, "/demo/session", with("Host", "127.0.0.1:8080"),
		with("Origin", "http://127.0.0.1:8080")).status)
}

func TestDemoThatCannotSignSaysSo(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(o *gateway.Options) {
		o.Demo = &gateway.Demo{Files: fstest.MapFS{}, Token: func(string) (string, error) { return "", errors.New("no secret") }}
	})
	r := k.visit(http.MethodPost, "/demo/session")
	require.Equal(t, http.StatusInternalServerError, r.status)
	require.NotContains(t, r.body, "no secret")
}

func TestWithoutDemoThereIsNoDemo(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	require.Equal(t, http.StatusNotFound, k.visit(http.MethodGet, "/demo").status)
	require.Equal(t, http.StatusNotFound, k.visit(http.MethodPost, "/demo/session").status)
}
