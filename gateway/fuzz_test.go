package gateway

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// FuzzDecodeBatch: whatever arrives, the decoder ends, and what it takes means
// the same to encoding/json, row by row.
func FuzzDecodeBatch(f *testing.F) {
	f.Add(`{"orders":[` + valid + `]}`)
	f.Add(`{"orders":[` + valid + `,` + strings.Replace(valid, "001", "002", 1) + `]}`)
	for _, body := range []string{`{}`, `{"orders":[]}`, `{"orders":null}`, `{"orders":{}}`, `{"orders":[null,1,[],"x",{}]}`, `{"orders":[],"orders":[]}`, `{"orders":[[[[`, `{"x":1,"orders":[{"sku":1}]}`} {
		f.Add(body)
	}
	const rows = 8
	f.Fuzz(func(t *testing.T, body string) {
		c, err := decodeBatch(body, rows).command(order.CreateBatch, "alice", "k")
		if err != nil {
			var invalid *order.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.NotEmpty(t, invalid.Faults)
			require.LessOrEqual(t, len(invalid.Faults), maxFaults)
			return
		}
		var want struct {
			Orders []struct {
				SKU             string          `json:"sku"`
				Quantity        int64           `json:"quantity"`
				Amount          json.RawMessage `json:"amount"`
				ExternalOrderNo string          `json:"external_order_no"`
			} `json:"orders"`
		}
		dec := json.NewDecoder(strings.NewReader(body))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&want), body)
		require.Len(t, c.Lines, len(want.Orders))
		require.LessOrEqual(t, len(c.Lines), rows)
		for i, line := range c.Lines {
			w := want.Orders[i]
			amount := string(w.Amount)
			if amount[0] == '"' {
				require.NoError(t, json.Unmarshal(w.Amount, &amount))
			}
			sum, err := order.ParseAmount(amount)
			require.NoError(t, err)
			require.Equal(t, order.Line{SKU: w.SKU, Quantity: w.Quantity, Amount: sum, ExternalOrderNo: w.ExternalOrderNo}, line)
		}
	})
}

// FuzzDecodeChange: the bodies of the admin listener.
func FuzzDecodeChange(f *testing.F) {
	for _, body := range []string{`{"balance":"100.00"}`, `{"available":1}`, `{}`, ``, `{"balance":1,"available":1}`, `{"balance":null}`, `{"available":-0}`, `[`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var invalid *order.InvalidError
		if balance, err := decodeBalance(body); err == nil {
			require.GreaterOrEqual(t, balance, order.Amount(0))
			require.True(t, json.Valid([]byte(body)), body)
		} else {
			require.ErrorAs(t, err, &invalid)
		}
		if available, err := decodeAvailable(body); err == nil {
			require.True(t, available >= 0 && available <= maxStock, available)
			require.True(t, json.Valid([]byte(body)), body)
		} else {
			require.ErrorAs(t, err, &invalid)
		}
		if err := decodeNothing(body); err != nil {
			require.ErrorAs(t, err, &invalid)
		}
	})
}

// FuzzToken: no token is believed but those that were signed, however they are
// bent.
func FuzzToken(f *testing.F) {
	const secret = "a secret for fuzzing, 32 bytes long"
	now := time.Date(2026, 8, 27, 9, 0, 0, 0, time.UTC)
	keys, err := HS256Keys([]byte(secret))
	require.NoError(f, err)
	v, err := NewTokenVerifier(TokenOptions{
		Keys: keys, Algorithms: []string{"HS256"}, Audience: "oncegate", Issuer: "fuzz", Now: func() time.Time { return now }, CacheSize: 16,
	})
	require.NoError(f, err)
	minted := map[string]bool{}
	mint := func(user, audience string, at time.Time) {
		token, err := MintToken([]byte(secret), TokenSpec{UserID: user, Scopes: []string{"orders"}, Audience: audience, Issuer: "fuzz", IssuedAt: at, TTL: time.Hour})
		require.NoError(f, err)
		minted[token] = audience == "oncegate" && at.Equal(now)
		f.Add(token)
	}
	mint("alice", "oncegate", now)
	mint("bob", "oncegate", now.Add(-2*time.Hour))
	mint("alice", "others", now)
	f.Add("..")
	f.Add("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.")
	f.Fuzz(func(t *testing.T, token string) {
		who, err := v.Authenticate(context.Background(), token)
		// Base64 passes over line ends, which no header can hold.
		spelled := strings.NewReplacer("\r", "", "\n", "").Replace(token)
		if err == nil {
			require.True(t, minted[spelled], token)
			require.True(t, order.ValidUserID(who.UserID))
			return
		}
		require.ErrorIs(t, err, ErrTokenInvalid)
		require.False(t, minted[token], "%s: %v", token, err)
	})
}

// FuzzSignature: a callback is believed only if one of its signatures is the
// HMAC of its id, time and body.
func FuzzSignature(f *testing.F) {
	secret := []byte("a secret of webhooks, 32 bytes..")
	now := time.Unix(1_800_000_000, 0)
	webhooks, err := NewWebhooks([]string{base64.StdEncoding.EncodeToString(secret)})
	require.NoError(f, err)
	sign := func(id, timestamp, body string) string {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + timestamp + "." + body))
		return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	at := strconv.FormatInt(now.Unix(), 10)
	f.Add("msg_1", at, sign("msg_1", at, "{}"), "{}")
	f.Add("msg_1", at, "v1,AA v2,AA "+sign("msg_1", at, "{}"), "{}")
	f.Add("msg_1", "+"+at, sign("msg_1", "+"+at, "{}"), "{}")
	f.Add("msg_1", "0"+at, sign("msg_1", at, "{}"), "{}")
	f.Add("msg.1", at, "v1,", "{}")
	f.Add("", "-9223372036854775808", "v1a,,, v1", "")
	f.Fuzz(func(t *testing.T, id, timestamp, signature, body string) {
		h := http.Header{headerWebhookID: {id}, headerWebhookTimestamp: {timestamp}, headerWebhookSignature: {signature}}
		if webhooks.timely(h, now) != nil {
			return
		}
		sent, err := strconv.ParseInt(timestamp, 10, 64)
		require.NoError(t, err)
		require.WithinDuration(t, now, time.Unix(sent, 0), webhookTolerance)
		if err := webhooks.verify([]byte(body), h); err != nil {
			require.ErrorIs(t, err, errWebhookSignature)
			return
		}
		require.Contains(t, strings.Split(signature, " "), sign(id, strconv.FormatInt(sent, 10), body))
	})
}

// FuzzCursor: a cursor has one spelling.
func FuzzCursor(f *testing.F) {
	id := order.NewIDs(time.Unix(1_800_000_000, 0), 1)[0]
	f.Add(cursorOf(id))
	for _, s := range []string{"", "AA", "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAB", "----------------------", "\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := parseCursor(s)
		if ok {
			require.False(t, id.IsZero())
			require.Equal(t, s, cursorOf(id))
		}
	})
}
