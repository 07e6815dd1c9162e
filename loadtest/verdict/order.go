package verdict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/oncegate/oncegate/loadtest/decimal"
	"github.com/oncegate/oncegate/loadtest/scenario"
)

// answered is an order as an answer shows it.
type answered struct {
	ID              string      `json:"order_id"`
	User            string      `json:"user_id"`
	SKU             string      `json:"sku"`
	Quantity        json.Number `json:"quantity"`
	Amount          any         `json:"amount"`
	ExternalOrderNo string      `json:"external_order_no"`
	Status          string      `json:"status"`
}

// parseOrders reads the orders of a success: one, or those of a batch.
func parseOrders(body []byte) ([]answered, error) {
	var b struct {
		answered
		Orders []answered `json:"orders"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&b); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read the answer: there is more behind it")
	}
	orders := b.Orders
	if orders == nil {
		orders = []answered{b.answered}
	}
	if len(orders) == 0 {
		return nil, errors.New("read the answer: it has no orders")
	}
	seen := make(map[string]int, len(orders))
	for i := range orders {
		id := orders[i].ID
		if id == "" {
			return nil, fmt.Errorf("row %d has no order_id", i)
		}
		if first, twice := seen[id]; twice {
			return nil, fmt.Errorf("rows %d and %d are one order, %s", first, i, id)
		}
		seen[id] = i
	}
	return orders, nil
}

// differs says in what an order of a success is not what was sent; "" when it is.
func (o *answered) differs(user string, want scenario.Line) string {
	amount := decimal.Text(want.Hundredths)
	switch {
	case o.User != user:
		return fmt.Sprintf("user_id is %q", o.User)
	case o.SKU != want.SKU:
		return fmt.Sprintf("sku is %q, sent %q", o.SKU, want.SKU)
	case o.Quantity.String() != strconv.FormatInt(want.Quantity, 10):
		return fmt.Sprintf("quantity is %s, sent %d", o.Quantity, want.Quantity)
	case o.Amount != amount:
		return fmt.Sprintf("amount is %#v, sent %s", o.Amount, amount)
	case o.ExternalOrderNo != want.ExternalOrderNo:
		return fmt.Sprintf("external_order_no is %q, sent %q", o.ExternalOrderNo, want.ExternalOrderNo)
	case o.Status != "PENDING":
		return fmt.Sprintf("status is %q, and the first answer is the first status", o.Status)
	}
	return ""
}

// explain says in what orders are not what was sent; "" when they are.
func explain(orders []answered, user string, want []scenario.Line) string {
	if len(orders) != len(want) {
		return fmt.Sprintf("%d orders, sent %d", len(orders), len(want))
	}
	for i := range orders {
		if d := orders[i].differs(user, want[i]); d != "" {
			if len(want) > 1 {
				return fmt.Sprintf("row %d: %s", i, d)
			}
			return d
		}
	}
	return ""
}
