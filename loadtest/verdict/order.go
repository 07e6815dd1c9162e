package verdict

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/oncegate/oncegate/loadtest/decimal"
	"github.com/oncegate/oncegate/loadtest/exact"
	"github.com/oncegate/oncegate/loadtest/scenario"
)

// answered is an order as an answer shows it.
type answered struct {
	ID, User, SKU   string
	Quantity        string // as it is spelled: "2" with its quotes is no number
	Amount          any
	ExternalOrderNo string
	Status          string
}

func readOrder(o exact.Object) (a answered, err error) {
	a.Quantity = string(o["quantity"])
	err = errors.Join(
		o.Read("order_id", &a.ID), o.Read("user_id", &a.User), o.Read("sku", &a.SKU), o.Read("amount", &a.Amount),
		o.Read("external_order_no", &a.ExternalOrderNo), o.Read("status", &a.Status),
	)
	return a, err
}

// parseOrders reads the orders of a success: one, or those of a batch.
func parseOrders(body []byte) ([]answered, error) {
	whole, err := exact.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	var rows []exact.Object
	if err := whole.Read("orders", &rows); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if rows == nil {
		rows = []exact.Object{whole}
	}
	if len(rows) == 0 {
		return nil, errors.New("read the answer: it has no orders")
	}
	orders := make([]answered, len(rows))
	seen := make(map[string]int, len(rows))
	for i := range rows {
		if orders[i], err = readOrder(rows[i]); err != nil {
			return nil, fmt.Errorf("read the answer: row %d: %w", i, err)
		}
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
	case o.Quantity != strconv.FormatInt(want.Quantity, 10):
		return fmt.Sprintf("quantity is %s, sent %d", o.Quantity, want.Quantity)
	case o.Amount != amount:
		return fmt.Sprintf("amount is %#v, sent %q", o.Amount, amount)
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
