package gateway_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// delivery is one delivery of a payment event.
type delivery struct {
	id     string
	body   string
	secret string        // default: webhookSecret
	age    time.Duration // of its timestamp
	signed string        // what is signed in place of the body
}

// deliver signs and sends an event. Headers change what is sent, not what is signed.
func (k *kit) deliver(d delivery, headers ...header) reply {
	k.t.Helper()
	if d.secret == "" {
		d.secret = webhookSecret
	}
	if d.signed == "" {
		d.signed = d.body
	}
	at := strconv.FormatInt(time.Now().Add(-d.age).Unix(), 10)
	return k.do(http.MethodPost, "/webhooks/payments", d.body, append([]header{
		with("Webhook-Id", d.id), with("Webhook-Timestamp", at), with("Webhook-Signature", sign(k.t, d.secret, d.id, at, d.signed)),
	}, headers...)...)
}

func sign(t testing.TB, secret, id, at, body string) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	require.NoError(t, err)
	mac := hmac.New(sha256.New, raw)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestEitherSecretSignsWhileOneIsReplaced(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	for i, secret := range []string{webhookSecret, rotatedSecret, "whsec_" + rotatedSecret} {
		r := k.deliver(delivery{id: fmt.Sprint("m", i), body: payment(id), secret: secret})
		require.Equal(t, http.StatusOK, r.status, secret)
	}
	both := func(h http.Header) {
		h.Set("Webhook-Signature", "v1a,x v2,x v1, v1,AAAA nonsense "+h.Get("Webhook-Signature"))
	}
	require.Equal(t, http.StatusOK, k.deliver(delivery{id: "m", body: payment(id)}, both).status, "one signature that fits is enough")
}

func TestWhatNobodySignedJustNowIsNotStored(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k")
	other := "whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldCAh"
	change := func(name string, f func(v string) []string) header {
		return func(h http.Header) { h[name] = f(h.Get(name)) }
	}
	twice := func(v string) []string { return []string{v, v} }
	none := func(string) []string { return nil }
	empty := func(string) []string { return []string{""} }
	for name, r := range map[string]reply{
		"wrong secret":         k.deliver(delivery{id: "m", body: payment(id), secret: other}),
		"empty secret":         k.deliver(delivery{id: "m", body: payment(id), secret: "whsec_"}),
		"tampered body":        k.deliver(delivery{id: "m", body: payment(id), signed: payment(order.NewID(time.Now()))}),
		"one blank more":       k.deliver(delivery{id: "m", body: payment(id) + " ", signed: payment(id)}),
		"tampered id":          k.deliver(delivery{id: "m", body: payment(id)}, with("Webhook-Id", "m2")),
		"tampered time":        k.deliver(delivery{id: "m", body: payment(id), age: 2 * time.Minute}, with("Webhook-Timestamp", strconv.FormatInt(time.Now().Unix(), 10))),
		"old":                  k.deliver(delivery{id: "m", body: payment(id), age: 302 * time.Second}),
		"of the future":        k.deliver(delivery{id: "m", body: payment(id), age: -310 * time.Second}),
		"of the far past":      k.deliver(delivery{id: "m", body: payment(id)}, with("Webhook-Timestamp", "-9223372036854775808")),
		"of the far future":    k.deliver(delivery{id: "m", body: payment(id)}, with("Webhook-Timestamp", "9223372036854775807")),
		"time is no number":    k.deliver(delivery{id: "m", body: payment(id)}, with("Webhook-Timestamp", "marker")),
		"time is a date":       k.deliver(delivery{id: "m", body: payment(id)}, with("Webhook-Timestamp", time.Now().Format(time.RFC3339))),
		"other version":        k.deliver(delivery{id: "m", body: payment(id)}, change("Webhook-Signature", func(v string) []string { return []string{"v2" + v[2:]} })),
		"bare signature":       k.deliver(delivery{id: "m", body: payment(id)}, change("Webhook-Signature", func(v string) []string { return []string{v[3:]} })),
		"cut signature":        k.deliver(delivery{id: "m", body: payment(id)}, change("Webhook-Signature", func(v string) []string { return []string{v[:20]} })),
		"no id":                k.deliver(delivery{id: "m", body: payment(id)}, change("Webhook-Id", none)),
		"no time":              k.deliver(delivery{id: "m", body: payment(id)}, change("Webhook-Timestamp", none)),
		"no signature":         k.deliver(delivery{id: "m", body: payment(id)}, change("Webhook-Signature", none)),
		"two ids":              k.deliver(delivery{id: "m", body: payment(id)}, change("Webhook-Id", twice)),
		"two times":            k.deliver(delivery{id: "m", body: payment(id)}, change("Webhook-Timestamp", twice)),
		"two signature lines":  k.deliver(delivery{id: "m", body: payment(id)}, change("Webhook-Signature", twice)),
		"empty id":             k.deliver(delivery{id: "", body: payment(id)}, change("Webhook-Id", empty)),
		"a token in its place": k.do(http.MethodPost, "/webhooks/payments", payment(id), as("alice"), as("ops", gateway.ScopeAdmin)),
	} {
		p := r.problem(t)
		require.Equal(t, http.StatusUnauthorized, r.status, name)
		require.Equal(t, "SIGNATURE_INVALID", p.Code, name)
		require.False(t, p.Retryable, name)
		require.Equal(t, `StandardWebhooks realm="oncegate"`, r.header.Get("WWW-Authenticate"), name)
	}
	require.Equal(t, order.Pending, k.status(id))
	require.Zero(t, k.events(id))
	k.stored(0, 0)
	require.NotContains(t, k.logs.String(), "marker")
	for _, age := range []time.Duration{290 * time.Second, -290 * time.Second} {
		require.Equal(t, http.StatusOK, k.deliver(delivery{id: "m", body: payment(id), age: age}).status, "clocks may differ a little")
	}
}

func TestWithoutASecretThereAreNoCallbacks(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(o *gateway.Options) { o.Webhooks = nil })
	require.Equal(t, http.StatusNotFound, k.deliver(delivery{id: "m", body: payment(order.NewID(time.Now()))}).status)
}
