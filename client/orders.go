package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"
)

// Line is what is ordered.
type Line struct {
	SKU      string `json:"sku"`      // 1 to 64 characters
	Quantity int    `json:"quantity"` // 1 to 1 000 000
	// Amount is for the whole line, exact, such as "39.80": 0.01 to 9999999999.99.
	Amount string `json:"amount"`
	// ExternalOrderNo is the caller's own business number; one order per user and
	// number. Required in a batch, may be empty otherwise.
	ExternalOrderNo string `json:"external_order_no,omitempty"`
}

// Order is an order that exists.
type Order struct {
	Line

	ID        string    `json:"order_id"`
	UserID    string    `json:"user_id"`
	Status    string    `json:"status"` // PENDING, PAID, SHIPPED, CANCELLED
	CreatedAt time.Time `json:"created_at"`
}

// Receipt tells how an intent was settled.
type Receipt struct {
	Key string // of the intent
	// Replayed: the gateway had settled it before, and this is its first answer.
	Replayed bool
	Attempts int // of this call
	// Sends is how often a request was given to a connection: Attempts, and what
	// net/http sent again on its own.
	Sends     int
	RequestID string // for the operator of the gateway
}

// OrderReceipt is the receipt of one order.
type OrderReceipt struct {
	Receipt

	Order Order
}

// BatchReceipt is the receipt of a batch.
type BatchReceipt struct {
	Receipt

	Orders []Order // as the lines were
}

// spelled reports a text that is not UTF-8. encoding/json would put another
// character there, and something else would be ordered, and charged.
func spelled(lines ...Line) error {
	for i, l := range lines {
		if !utf8.ValidString(l.SKU) || !utf8.ValidString(l.Amount) || !utf8.ValidString(l.ExternalOrderNo) {
			return fmt.Errorf("client: line %d has a text that is not UTF-8; nothing was sent", i)
		}
	}
	return nil
}

// CreateOrder has one order made for the intent, at most one ever, and returns
// its receipt. Call it again after an [*UnsettledError], also after a restart,
// with the same line: another one is refused, and settles nothing.
//
// The error is a [*Problem], an [*UnsettledError], or that of the key store, the
// token or a text that is not UTF-8, before anything was sent.
func (c *Client) CreateOrder(ctx context.Context, intent string, line Line) (OrderReceipt, error) {
	if err := spelled(line); err != nil {
		return OrderReceipt{}, err
	}
	var r OrderReceipt
	err := c.settle(ctx, intent, "/api/orders", line, &r.Receipt, func(body []byte) bool {
		return json.Unmarshal(body, &r.Order) == nil && r.Order.ID != ""
	})
	if err != nil {
		return OrderReceipt{}, err
	}
	return r, nil
}

// CreateBatch has all lines made orders under one intent, or none; otherwise it
// is like [Client.CreateOrder].
func (c *Client) CreateBatch(ctx context.Context, intent string, lines []Line) (BatchReceipt, error) {
	if err := spelled(lines...); err != nil {
		return BatchReceipt{}, err
	}
	var r BatchReceipt
	content := struct {
		Orders []Line `json:"orders"`
	}{lines}
	err := c.settle(ctx, intent, "/api/order-batches", content, &r.Receipt, func(body []byte) bool {
		var answer struct{ Orders []Order }
		if json.Unmarshal(body, &answer) != nil || len(answer.Orders) == 0 || len(answer.Orders) != len(lines) ||
			slices.ContainsFunc(answer.Orders, func(o Order) bool { return o.ID == "" }) {
			return false
		}
		r.Orders = answer.Orders
		return true
	})
	if err != nil {
		return BatchReceipt{}, err
	}
	return r, nil
}

// Order reads an order of the user's. It asks once.
func (c *Client) Order(ctx context.Context, id string) (Order, error) {
	a, err := c.attempt(ctx, http.MethodGet, "/api/orders/"+url.PathEscape(id), nil, nil)
	if err != nil {
		return Order{}, err
	}
	if problem := problemOf(a); problem != nil {
		return Order{}, problem
	}
	var o Order
	if err := json.Unmarshal(a.body, &o); a.status != http.StatusOK || err != nil || o.ID == "" {
		return Order{}, fmt.Errorf("client: read an order: %w", foreign(a))
	}
	return o, nil
}
