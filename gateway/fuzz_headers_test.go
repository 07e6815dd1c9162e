package gateway

import (
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// FuzzHost: whatever a browser would look up as a name, the admin listener does
// not go by, but for localhost and the names that it was given.
func FuzzHost(f *testing.F) {
	for _, host := range []string{
		"127.0.0.1:9090", "localhost", "[::1]:9090", "admin.example:1", "0.0.0.0", "[::]", "[::ffff:0.0.0.0]:1", "evil.example", "127.0.0.1.evil.example",
		"localhost:evil.example", "[localhost]", "[fe80::1%25eth0]", "localhost.", "::1", "[[::1]]", "a@127.0.0.1", "127.0.0.1:80:90", "", ":", "[", "1",
	} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		if !calledBy(&http.Request{Host: host}, []string{"admin.example"}) {
			return
		}
		u, err := url.Parse("http://" + host + "/")
		if err != nil || u.User != nil {
			return // nothing that a browser can ask
		}
		name := strings.ToLower(u.Hostname())
		ip, err := netip.ParseAddr(name)
		require.True(t, err == nil && !ip.Unmap().IsUnspecified() || name == "localhost" || name == "admin.example", "%q: %q", host, name)
	})
}

// FuzzOrigin: an origin that passes is of the host that was called.
func FuzzOrigin(f *testing.F) {
	for _, o := range []string{"http://127.0.0.1:9090", "https://evil.example", "null", "", "http://127.0.0.1:9090@evil.example", "http:127.0.0.1:9090", "//127.0.0.1:9090", "http://127.0.0.1:9090, http://evil.example", "%"} {
		f.Add(o, "127.0.0.1:9090")
	}
	f.Fuzz(func(t *testing.T, origin, host string) {
		if host == "" {
			return // net/http refuses it, or calledBy does
		}
		r := &http.Request{Host: host, Header: http.Header{"Origin": {origin}}}
		if ownOrigin(r) {
			require.Contains(t, origin, "//", "it has an authority")
			u, err := url.Parse(origin)
			require.NoError(t, err)
			require.Equal(t, host, u.Host)
		}
		r.Header["Origin"] = []string{origin, "https://evil.example"}
		require.True(t, !ownOrigin(r) || host == "evil.example", "one of them is enough")
	})
}

// FuzzIfMatch: a tag has one spelling, and stands alone.
func FuzzIfMatch(f *testing.F) {
	for _, s := range []string{`"0"`, `"12-5f3a"`, `W/"0"`, `*`, `"0", "1"`, `0`, `""`, `"A"`, "\"0\"\n", `"0" `} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tag, given, ok := expectedTag(http.Header{"If-Match": {s}})
		require.True(t, given)
		require.Equal(t, ok, tag != "")
		if ok {
			require.Equal(t, s, quoted(tag))
			_, _, ok = expectedTag(http.Header{"If-Match": {s, s}})
			require.False(t, ok)
		}
	})
}

// FuzzContentType: what passes as JSON is JSON in UTF-8 to the standard library
// too, whatever its letters' case.
func FuzzContentType(f *testing.F) {
	for _, s := range []string{"application/json", "Application/JSON; charset=\"UTF-8\"", "application/json; charset=latin1", "application/json;charset*=utf-8''utf-8", "application/json; charset*0=utf; charset*1=-8", "application/json;", "text/plain", "application/json, text/plain"} {
		f.Add(s, "")
		f.Add(s, "gzip")
		f.Add(s, "identity")
	}
	f.Fuzz(func(t *testing.T, contentType, encoding string) {
		h := http.Header{"Content-Type": {contentType}}
		if encoding != "" {
			h["Content-Encoding"] = []string{encoding}
		}
		if !jsonBody(h) {
			return
		}
		require.True(t, encoding == "" || strings.EqualFold(strings.TrimSpace(encoding), "identity"), encoding)
		media, params, err := mime.ParseMediaType(contentType)
		require.NoError(t, err)
		require.Equal(t, "application/json", media)
		require.Contains(t, []string{"", "utf-8"}, strings.ToLower(params["charset"]))
		h["Content-Type"] = []string{contentType, contentType}
		require.False(t, jsonBody(h), "one line only")
	})
}

// FuzzRequestID: what a caller may name a request is harmless in a log, and is not
// the key, however that is written.
func FuzzRequestID(f *testing.F) {
	f.Add("trace-1", "key-1")
	f.Add("01A22AFEFF1C70A6A26D81DF13E442FF", "01a22afe-ff1c-70a6-a26d-81df13e442ff")
	f.Add("k", `"k"`)
	f.Add("\n", "")
	f.Add("x.01a22afeff1c", "01a22afeff1c")
	f.Fuzz(func(t *testing.T, own, key string) {
		r := &http.Request{Header: http.Header{"X-Request-Id": {own}, "Idempotency-Key": {key}}}
		for _, id := range []string{requestID(r, ""), requestID(&http.Request{Header: http.Header{"X-Request-Id": {own}}}, key)} {
			require.True(t, harmlessID(id), id)
			require.Empty(t, strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_."))
			if parsed, err := order.ParseKey(key); err == nil && len(parsed) >= tellingLen {
				require.NotContains(t, strings.ToLower(id), strings.ToLower(string(parsed)))
			}
		}
	})
}

// FuzzStatusURL: the address that an answer names leads back to the key, on every
// way that an address takes through a client and this gateway.
func FuzzStatusURL(f *testing.F) {
	for _, s := range []string{"k1", "a/b", "..", ".", "%41", "%2f", "a?b#c", "{x}", ";", "+", `\`, "//", "...", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := order.ParseKey(text)
		if err != nil || statusURL(key) == "" {
			return
		}
		u, err := url.ParseRequestURI("https://gateway.example" + statusURL(key))
		require.NoError(t, err)
		require.Empty(t, u.RawQuery)
		require.Empty(t, u.Fragment)
		last, found := strings.CutPrefix(u.EscapedPath(), requestsPath)
		require.True(t, found)
		require.NotContains(t, last, "/")
		require.Equal(t, statusURL(key), u.JoinPath().EscapedPath(), "cleaning leaves it as it is")
		back, err := url.PathUnescape(last)
		require.NoError(t, err)
		require.Equal(t, string(key), back)
	})
}

// FuzzListQuery: a query that passes has known parameters only, once each, and
// what was read of it written again is the same page.
func FuzzListQuery(f *testing.F) {
	for _, s := range []string{"", "limit=1", "limit=1&limit=1", "%6cimit=2", "limit=+1", "limit=01", "cursor=AAAAAAAAAAAAAAAAAAAAAQ&limit=100", "limit=1;cursor=2", "x=1", "&", "=", "%", "limit"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if len(unread(raw, "cursor", "limit")) > 0 {
			return
		}
		q, err := url.ParseQuery(raw)
		require.NoError(t, err)
		for name := range q {
			require.True(t, slices.Contains([]string{"cursor", "limit"}, name), name)
		}
		before, limit, faults := pageOf(q)
		if len(faults) > 0 {
			return
		}
		require.True(t, limit >= 1 && limit <= maxPage, limit)
		again := url.Values{}
		if q.Has("limit") {
			require.Len(t, q["limit"], 1)
			again.Set("limit", q["limit"][0])
		}
		if q.Has("cursor") {
			again.Set("cursor", cursorOf(before))
		}
		require.Equal(t, again, q)
	})
}

// FuzzTTLQuery: what may be asked about is within its bounds.
func FuzzTTLQuery(f *testing.F) {
	for _, s := range []string{"", "ttl=90s&ttl=7d", "target=0.5", "target=NaN", "target=1e-999", "ttl=-1s", "ttl=367d", "ttl=99999d", "ttl=65536d", "ttl=d", "target=0x1p-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		target, ttls, err := ttlQuery(q)
		if err != nil {
			var invalid *order.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.NotEmpty(t, invalid.Faults)
			return
		}
		require.True(t, target > 0 && target <= 1, target)
		require.Len(t, ttls, len(q["ttl"]))
		require.LessOrEqual(t, len(ttls), maxTTLs)
		for _, ttl := range ttls {
			require.True(t, ttl > 0 && ttl <= longestTTL, ttl)
		}
	})
}
