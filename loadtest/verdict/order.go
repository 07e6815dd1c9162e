package verdict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

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
	orders := b.Orders
	if orders == nil {
		orders = []answered{b.answered}
	}
	for i := range orders {
		if orders[i].ID == "" {
			return nil, fmt.Errorf("row %d has no order_id", i)
		}
	}
	return orders, nil
}

// differs says in what an order is not what was sent; "" when it is.
func (o *answered) differs(user string, want scenario.Line) string {
	amount, err := hundredths(fmt.Sprint(o.Amount))
	switch {
	case o.User != "" && o.User != user:
		return fmt.Sprintf("user_id is %q", o.User)
	case o.SKU != want.SKU:
		return fmt.Sprintf("sku is %q, sent %q", o.SKU, want.SKU)
	case o.Quantity.String() != strconv.FormatInt(want.Quantity, 10):
		return fmt.Sprintf("quantity is %s, sent %d", o.Quantity, want.Quantity)
	case err != nil || amount != want.Hundredths:
		return fmt.Sprintf("amount is %v, sent %s hundredths", o.Amount, strconv.FormatInt(want.Hundredths, 10))
	case o.ExternalOrderNo != want.ExternalOrderNo:
		return fmt.Sprintf("external_order_no is %q, sent %q", o.ExternalOrderNo, want.ExternalOrderNo)
	}
	return ""
}

// hundredths reads a decimal with at most two places, exactly.
func hundredths(s string) (int64, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	if whole == "" || len(fraction) > 2 {
		return 0, fmt.Errorf("amount %q is not a decimal with at most two places", s)
	}
	n, err := strconv.ParseInt(whole+(fraction + "00")[:2], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("amount %q: %w", s, err)
	}
	return n, nil
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
