package gateway

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func sample(t testing.TB, number string) order.Order {
	t.Helper()
	id, err := order.ParseID("01992f3e-5c1d-7a6b-8f00-3b1f6c2d9e10")
	require.NoError(t, err)
	return order.Order{
		ID: id, UserID: "alice", Key: "a/b c?", Status: order.Pending,
		Line:      order.Line{SKU: "pot\"st\\ick\u2028er <&> 🥟", Quantity: 2, Amount: 3980, ExternalOrderNo: number},
		CreatedAt: time.Date(2026, 8, 27, 11, 30, 0, 123_999_999, time.FixedZone("CEST", 7200)),
	}
}

// These bytes are stored and replayed: a change of them is a change of the contract.
func TestCreatedIsStable(t *testing.T) {
	t.Parallel()
	const plain = `{"order_id":"01992f3e-5c1d-7a6b-8f00-3b1f6c2d9e10","user_id":"alice","sku":"pot\"st\\ick` + "\u2028" +
		`er <&> 🥟","quantity":2,"amount":"39.80","status":"PENDING","created_at":"2026-08-27T09:30:00.123Z"}`
	const numbered = `{"order_id":"01992f3e-5c1d-7a6b-8f00-3b1f6c2d9e10","user_id":"alice","sku":"pot\"st\\ick` + "\u2028" +
		`er <&> 🥟","quantity":2,"amount":"39.80","external_order_no":"B-1","status":"PENDING","created_at":"2026-08-27T09:30:00.123Z"}`
	r := NewRenderer("")
	resp := r.Created(order.CreateOrder, []order.Order{sample(t, "")})
	require.Equal(t, plain, string(resp.Body))
	require.Equal(t, http.StatusCreated, resp.Status)
	require.Equal(t, "application/json", resp.ContentType)
	require.Equal(t, "/api/orders/01992f3e-5c1d-7a6b-8f00-3b1f6c2d9e10", resp.Location)

	batch := r.Created(order.CreateBatch, []order.Order{sample(t, "B-1"), sample(t, "B-1")})
	require.Equal(t, `{"orders":[`+numbered+`,`+numbered+`]}`, string(batch.Body))
	require.Equal(t, "/api/requests/a%2Fb%20c%3F", batch.Location)
	keyless := sample(t, "B-1")
	keyless.Key = ""
	require.Empty(t, r.Created(order.CreateBatch, []order.Order{keyless}).Location)
}

func TestRejectedIsStable(t *testing.T) {
	t.Parallel()
	r := NewRenderer("https://docs.example/problems/")
	resp := r.Rejected(order.CreateOrder, order.Rejection{Code: order.OutOfStock, SKU: "ra\nre"})
	require.Equal(t, http.StatusUnprocessableEntity, resp.Status)
	require.Equal(t, "application/problem+json", resp.ContentType)
	require.Empty(t, resp.Location)
	require.Equal(t, `{"type":"https://docs.example/problems/out-of-stock","title":"Not enough is in stock","status":422,`+
		`"detail":"Nothing was ordered. Another try is a new intent and needs a new key.","code":"OUT_OF_STOCK","outcome":"rejected",`+
		`"retryable":false,"safe_new_key":true,"sku":"ra\nre"}`, string(resp.Body))

	resp = NewRenderer("").Rejected(order.CreateBatch, order.Rejection{Code: order.OrderAlreadyExists, Conflicts: []order.Conflict{
		{Row: 1, ExternalOrderNo: "1", Reason: order.ExistsDifferent, OrderID: sample(t, "").ID, Fields: []string{"amount", "sku"}},
		{Row: 2, ExternalOrderNo: "2", Reason: order.DuplicateInBatch},
	}})
	require.Equal(t, http.StatusConflict, resp.Status)
	require.Contains(t, string(resp.Body), `"conflicts":[{"row":1,"external_order_no":"1","reason":"exists_different",`+
		`"order_id":"01992f3e-5c1d-7a6b-8f00-3b1f6c2d9e10","fields":["amount","sku"]},{"row":2,"external_order_no":"2","reason":"duplicate_in_batch"}]}`)
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", `"\`, "\x00\x1f\x7f", "\u2028", "é🥟", "\xff", "a\xc3", "\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		var want string
		b, _ := json.Marshal(s)
		if err := json.Unmarshal(b, &want); err != nil || got != want {
			t.Fatalf("%q became %q, encoding/json has %q", s, got, want)
		}
	})
}

func BenchmarkRenderOrder(b *testing.B) {
	b.ReportAllocs()
	r := NewRenderer("")
	orders := []order.Order{sample(b, "B20260827-001")}
	for b.Loop() {
		r.Created(order.CreateOrder, orders)
	}
}

// A late copy of a request whose refusal was forgotten can still make an order.
func TestForgottenRefusalsPromiseNoNewKey(t *testing.T) {
	t.Parallel()
	r := NewRenderer("")
	for _, code := range []order.RejectionCode{order.InsufficientBalance, order.OutOfStock, order.OrderAlreadyExists} {
		rejection := order.Rejection{Code: code}
		require.Contains(t, string(r.Rejected(order.CreateOrder, rejection).Body), `"safe_new_key":true`)
		rejection.Forgotten = true
		forgotten := string(r.Rejected(order.CreateOrder, rejection).Body)
		require.Contains(t, forgotten, `"safe_new_key":false`)
		require.Contains(t, forgotten, "Keep the key")
		require.NotContains(t, forgotten, "a new key.", "people are told the same")
	}
}
