package drive

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/oncegate/oncegate/loadtest/decimal"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/wire"
)

type lineBody struct {
	SKU             string `json:"sku"`
	Quantity        int64  `json:"quantity"`
	Amount          string `json:"amount"`
	ExternalOrderNo string `json:"external_order_no,omitempty"`
}

func line(l scenario.Line) lineBody {
	return lineBody{l.SKU, l.Quantity, decimal.Text(l.Hundredths), l.ExternalOrderNo}
}

func orderRequest(who Identity, it *scenario.Intent, lines []scenario.Line) *wire.Request {
	path, content := "/api/orders", any(line(lines[0]))
	switch it.Behaviour.Endpoint {
	case scenario.Alias:
		path = "/order/create_user_order"
	case scenario.Batch:
		path = "/api/order-batches"
		rows := make([]lineBody, len(lines))
		for i := range lines {
			rows[i] = line(lines[i])
		}
		content = map[string]any{"orders": rows}
	case scenario.Orders:
	}
	return &wire.Request{
		Method: http.MethodPost,
		Path:   path,
		Fields: []wire.Field{{Name: "Authorization", Value: "Bearer " + who.Token}, {Name: "Idempotency-Key", Value: it.Key}},
		Body:   encode(content),
	}
}

func statusRequest(who Identity, it *scenario.Intent) *wire.Request {
	return &wire.Request{
		Method: http.MethodGet,
		Path:   "/api/requests/" + url.PathEscape(it.Key),
		Fields: []wire.Field{{Name: "Authorization", Value: "Bearer " + who.Token}},
	}
}

// encode writes JSON of types that cannot fail.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode a request: %v", err))
	}
	return b
}
