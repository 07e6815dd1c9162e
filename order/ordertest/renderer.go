package ordertest

import (
	"encoding/json"
	"net/http"

	"github.com/oncegate/oncegate/order"
)

// PlainRenderer renders answers as plain JSON that [ParseCreated] and
// [ParseRejected] read back. [RunLedger] needs ledgers that render with it.
type PlainRenderer struct{}

var _ order.Renderer = PlainRenderer{}

// PlainOrder is one order of a rendered success.
type PlainOrder struct {
	ID              string `json:"order_id"`
	UserID          string `json:"user_id"`
	SKU             string `json:"sku"`
	Quantity        int64  `json:"quantity"`
	Amount          string `json:"amount"`
	ExternalOrderNo string `json:"external_order_no,omitempty"`
	LineNo          int    `json:"line_no"`
	Status          string `json:"status"`
	CreatedAt       string `json:"created_at"`
}

// PlainCreated is a rendered success.
type PlainCreated struct {
	Operation order.Operation `json:"operation"`
	Orders    []PlainOrder    `json:"orders"`
}

// PlainConflict is one conflict of a rendered refusal.
type PlainConflict struct {
	Row             int                  `json:"row"`
	ExternalOrderNo string               `json:"external_order_no"`
	Reason          order.ConflictReason `json:"reason"`
	OrderID         string               `json:"order_id,omitempty"`
	Fields          []string             `json:"fields,omitempty"`
}

// PlainRejected is a rendered refusal.
type PlainRejected struct {
	Operation order.Operation     `json:"operation"`
	Code      order.RejectionCode `json:"code"`
	SKU       string              `json:"sku,omitempty"`
	Conflicts []PlainConflict     `json:"conflicts,omitempty"`
	Forgotten bool                `json:"forgotten,omitempty"`
}

// Created implements [order.Renderer].
func (PlainRenderer) Created(op order.Operation, orders []order.Order) order.Response {
	body := PlainCreated{Operation: op, Orders: make([]PlainOrder, len(orders))}
	for i := range orders {
		o := &orders[i]
		body.Orders[i] = PlainOrder{
			ID: o.ID.String(), UserID: o.UserID,
			SKU: o.Line.SKU, Quantity: o.Line.Quantity, Amount: o.Line.Amount.String(), ExternalOrderNo: o.Line.ExternalOrderNo,
			LineNo: o.LineNo, Status: string(o.Status), CreatedAt: o.CreatedAt.Format(order.TimeFormat),
		}
	}
	r := order.Response{Status: http.StatusCreated, ContentType: "application/json", Body: mustMarshal(body)}
	if op == order.CreateOrder && len(orders) == 1 {
		r.Location = "/api/orders/" + orders[0].ID.String()
	}
	return r
}

// Rejected implements [order.Renderer].
func (PlainRenderer) Rejected(op order.Operation, r order.Rejection) order.Response {
	body := PlainRejected{Operation: op, Code: r.Code, SKU: r.SKU, Forgotten: r.Forgotten}
	for _, c := range r.Conflicts {
		p := PlainConflict{Row: c.Row, ExternalOrderNo: c.ExternalOrderNo, Reason: c.Reason, Fields: c.Fields}
		if !c.OrderID.IsZero() {
			p.OrderID = c.OrderID.String()
		}
		body.Conflicts = append(body.Conflicts, p)
	}
	status := http.StatusUnprocessableEntity
	if r.Code == order.OrderAlreadyExists {
		status = http.StatusConflict
	}
	return order.Response{Status: status, ContentType: "application/problem+json", Body: mustMarshal(body)}
}

// ParseCreated reads a success that [PlainRenderer] rendered.
func ParseCreated(body []byte) (PlainCreated, error) {
	var c PlainCreated
	err := json.Unmarshal(body, &c)
	return c, err
}

// ParseRejected reads a refusal that [PlainRenderer] rendered.
func ParseRejected(body []byte) (PlainRejected, error) {
	var r PlainRejected
	err := json.Unmarshal(body, &r)
	return r, err
}

// mustMarshal panics on an error: the types above always marshal.
func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
