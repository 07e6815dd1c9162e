package verdict

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/scenario"
)

// FuzzParseOrders: orders that could be read have ids of their own, are as many as
// the answer has, and none of them is taken for another line than it shows.
func FuzzParseOrders(f *testing.F) {
	for _, s := range []string{
		`{"order_id":"a","user_id":"u","sku":"s","quantity":1,"amount":"1.00","status":"PENDING"}`, `{"orders":[{"order_id":"a"},{"order_id":"b"}]}`,
		`{"orders":[{"order_id":"a"},{"order_id":"a"}]}`, `{"orders":[]}`, `{"orders":null}`, `{"order_id":"a","orders":[{"order_id":"b"}]}`, `{}`, `{"order_id":"a"}{}`,
		`{"order_id":"a","amount":1.00,"quantity":1.0}`, `{"order_id":"a","quantity":"1"}`, `[`,
	} {
		f.Add([]byte(s))
	}
	line := scenario.Line{SKU: "s", Quantity: 1, Hundredths: 100}
	f.Fuzz(func(t *testing.T, body []byte) {
		orders, err := parseOrders(body)
		if err != nil {
			require.Empty(t, orders)
			return
		}
		require.NotEmpty(t, orders)
		require.True(t, json.Valid(body), "whole, and nothing behind it")
		seen := map[string]bool{}
		for i := range orders {
			require.NotEmpty(t, orders[i].ID)
			require.False(t, seen[orders[i].ID])
			seen[orders[i].ID] = true
			same := orders[i].User == "u" && orders[i].SKU == "s" && orders[i].Quantity == "1" && orders[i].Amount == "1.00" &&
				orders[i].ExternalOrderNo == "" && orders[i].Status == "PENDING"
			require.Equal(t, same, orders[i].differs("u", line) == "")
		}
		require.NotEmpty(t, explain(orders, "u", make([]scenario.Line, len(orders)+1)))
	})
}
