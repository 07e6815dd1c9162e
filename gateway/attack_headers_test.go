package gateway_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

const huge = 30 << 10 // fits the header limit, and nothing reasonable

func TestAbsurdHeadersChangeNothing(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]header{
		"Prefer of commas":            with("Prefer", strings.Repeat(",", huge)),
		"Prefer of waits":             with("Prefer", strings.Repeat("wait=1,", huge/8)),
		"Prefer that overflows":       with("Prefer", "wait="+strings.Repeat("9", huge)),
		"Prefer that is negative":     with("Prefer", "wait=-1"),
		"Prefer of quotes":            with("Prefer", `wait="`+strings.Repeat(`\"`, huge/2)),
		"many Prefer lines":           func(h http.Header) { h["Prefer"] = strings.Split(strings.Repeat("wait,", 500), ",") },
		"Accept of nothing we have":   with("Accept", "image/png;q=0.1"),
		"Accept-Encoding of anything": with("Accept-Encoding", strings.Repeat("gzip;q=0.001,", huge/13)),
		"Accept-Encoding: identity;0": with("Accept-Encoding", "identity;q=0, *;q=0"),
		"Accept-Language":             with("Accept-Language", strings.Repeat("x-", huge/2)),
		"Range":                       with("Range", "bytes="+strings.Repeat("0-,", huge/3)),
		"conditions":                  with("If-None-Match", "*"),
		"method override":             with("X-Http-Method-Override", "DELETE"),
		"path override":               with("X-Original-Url", "/admin/v1/users/bob"),
		"forwarded user":              with("X-Forwarded-User", "bob"),
		"a user of its own":           with("X-User-Id", "bob"),
		"cookies":                     with("Cookie", strings.Repeat("a=b;", huge/4)),
		"a type of parameters":        with("Content-Type", "application/json"+strings.Repeat(`;a="b"`, huge/6)),
		"a type in pieces":            with("Content-Type", "application/json"+strings.Repeat(";a*0=b", huge/6)),
		"upgrade":                     func(h http.Header) { h.Set("Connection", "Upgrade, HTTP2-Settings"); h.Set("Upgrade", "h2c") },
		"hop by hop":                  with("Connection", "close, Authorization, Idempotency-Key"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			r := k.post(plain, key("k1"), h)
			require.Equal(t, http.StatusCreated, r.status, r.body)
			require.Contains(t, r.body, `"user_id":"alice"`)
			id := mustID(t, strings.TrimPrefix(r.header.Get("Location"), "/api/orders/"))
			batch := k.batch(`{"orders":[`+potstick+`]}`, key("k2"), h)
			require.Equal(t, http.StatusCreated, batch.status, batch.body)
			require.Contains(t, batch.body, `"user_id":"alice"`)
			paid := k.deliver(delivery{id: "m", body: payment(id)}, h)
			paid.effect(t, "applied", false, false)
			status := k.get("/api/requests/k1", h)
			require.Equal(t, http.StatusOK, status.status, status.body)
			require.Contains(t, status.body, `"state":"succeeded"`)
			for _, r := range []reply{r, batch, paid, status} {
				require.Empty(t, r.header.Get("Content-Encoding"))
			}
			n, err := k.ledger.CountOrders(context.Background(), "bob")
			require.NoError(t, err)
			require.Zero(t, n)
		})
	}
}

func TestAbsurdTypesAreRefused(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	for name, types := range map[string][]string{
		"a charset of its own": {"application/json; charset=utf-7"},
		"two charsets":         {"application/json; charset=utf-8; charset=utf-7"},
		"two types":            {"application/json", "text/plain"},
		"a list":               {"application/json, application/json"},
		"a form with JSON":     {"text/plain; application/json"},
		"XML":                  {"application/xml"},
		"a null byte's name":   {"application/json%00"},
	} {
		absurd := func(h http.Header) { h["Content-Type"] = types }
		for route, r := range map[string]reply{
			"order":    k.post(plain, key("k1"), absurd),
			"batch":    k.batch(two("1", "2"), key("k1"), absurd),
			"callback": k.deliver(delivery{id: "m", body: payment(id)}, absurd),
		} {
			require.Equal(t, http.StatusUnsupportedMediaType, r.status, "%s of %s", route, name)
			r.problem(t)
		}
	}
	require.Equal(t, 1, k.ledger.Calls().Decide)
	require.Equal(t, order.Pending, k.status(id))
	k.stored(0, 0)
}

// A compressed body is refused before it is read: a bomb costs nothing.
func TestCompressedBodiesAreRefusedOnEveryRoute(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, err := z.Write(bytes.Repeat([]byte(" "), 1<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	d := newDeskOn(t, k, func(o *gateway.AdminOptions) { o.Settings = &settingsFake{} })
	tried := 0
	for template, item := range document(t).Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody == nil {
				continue
			}
			tried++
			for _, coding := range []string{"gzip", "x-gzip", "deflate", "br", "zstd", "compress", "identity, gzip", "GZIP", "", "aes128gcm"} {
				coded := func(h http.Header) { h["Content-Encoding"] = []string{coding} }
				var r reply
				if slices.Contains(op.Tags, "admin") {
					r = d.ask(here, method, sampleOf(template), bomb.String(), current(), coded)
				} else {
					r = k.do(method, sampleOf(template), bomb.String(), as("alice"), key("k1"), coded)
				}
				require.Equal(t, http.StatusUnsupportedMediaType, r.status, "%s %s %q", method, template, coding)
			}
		}
	}
	require.GreaterOrEqual(t, tried, 8)
	require.Zero(t, k.ledger.Calls().Decide)
}

func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	k := newLiveKit(t)
	for name, h := range map[string]string{
		"one long line":         "X-Long: " + strings.Repeat("x", 64<<10),
		"a name without an end": strings.Repeat("x", 64<<10) + ": y",
		"many short lines":      strings.TrimSuffix(strings.Repeat("X-Many: y\r\n", 8<<10), "\r\n"),
		"one long folded line":  "X-Long: y" + strings.Repeat("\r\n "+strings.Repeat("x", 1000), 64),
	} {
		answers := k.exchange(request("alice", declared(plain)+"\r\n"+h, plain))
		require.Len(t, answers, 1, name)
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answers[0].status, name)
		require.True(t, answers[0].closes, name)
	}
	long := "GET /api/orders/" + strings.Repeat("0", 64<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n"
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, k.exchange(long)[0].status)
	require.Zero(t, k.ledger.Calls().Decide)
}

func TestOnlyOneKeyLineCounts(t *testing.T) {
	t.Parallel()
	line := func(lines ...string) string {
		return "POST /api/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + mint("alice", "orders") +
			"\r\nContent-Type: application/json\r\n" + strings.Join(lines, "\r\n") + "\r\n" + declared(plain) + "\r\n\r\n" + plain + goodbye
	}
	for name, c := range map[string]struct {
		lines []string
		code  string
	}{
		"two keys":               {[]string{"Idempotency-Key: k1", "Idempotency-Key: k2"}, "IDEMPOTENCY_KEY_INVALID"},
		"the same key twice":     {[]string{"Idempotency-Key: k1", "Idempotency-Key: k1"}, "IDEMPOTENCY_KEY_INVALID"},
		"two spellings":          {[]string{"Idempotency-Key: k1", "IDEMPOTENCY-KEY: k2"}, "IDEMPOTENCY_KEY_INVALID"},
		"a list of keys":         {[]string{"Idempotency-Key: k1, k2"}, "IDEMPOTENCY_KEY_INVALID"},
		"a folded key":           {[]string{"Idempotency-Key: k1", "\tk2"}, "IDEMPOTENCY_KEY_INVALID"},
		"an empty key":           {[]string{"Idempotency-Key:"}, "IDEMPOTENCY_KEY_INVALID"},
		"a key beside an empty":  {[]string{"Idempotency-Key:", "Idempotency-Key: k1"}, "IDEMPOTENCY_KEY_INVALID"},
		"a name with underscore": {[]string{"Idempotency_Key: k1"}, "IDEMPOTENCY_KEY_REQUIRED"},
		"a name with a prefix":   {[]string{"X-Idempotency-Key: k1"}, "IDEMPOTENCY_KEY_REQUIRED"},
		"small letters":          {[]string{"idempotency-key: k1"}, ""},
		"capital letters":        {[]string{"IDEMPOTENCY-KEY:   k1   "}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			answers := k.exchange(line(c.lines...))
			require.Len(t, answers, 2)
			if c.code == "" {
				require.Equal(t, http.StatusCreated, answers[0].status, answers[0].body)
				require.Equal(t, "true", k.post(plain, key("k1")).header.Get("Idempotent-Replayed"), "it is the key k1")
				return
			}
			require.Equal(t, http.StatusBadRequest, answers[0].status)
			require.Contains(t, answers[0].body, fmt.Sprintf("%q:%q", "code", c.code))
			require.Zero(t, k.ledger.Calls().Decide)
		})
	}
}

func TestHeadersThatMayStandOnceDo(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	bearer := "Authorization: Bearer " + mint("bob", "orders")
	require.Equal(t, http.StatusUnauthorized, k.exchange(request("alice", declared(plain)+"\r\n"+bearer, plain+goodbye))[0].status)
	require.Equal(t, http.StatusUnsupportedMediaType, k.exchange(request("alice", declared(plain)+"\r\nContent-Type: application/json", plain+goodbye))[0].status)
	require.Equal(t, http.StatusBadRequest, k.exchange(request("alice", declared(plain)+"\r\nHost: y", plain))[0].status)
	require.Zero(t, k.ledger.Calls().Decide)
}
