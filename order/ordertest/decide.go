package ordertest

import (
	"time"

	"github.com/oncegate/oncegate/order"
)

type decideOptions struct {
	render    order.Renderer
	at        time.Time
	remember  bool
	provision *order.Amount
	deferred  bool // the command was accepted before and gets its answer now
}

// decide is one transaction, in the order of steps that every ledger has: the
// user, the record of the key, the business numbers, balance and stock, writes.
func (t *tables) decide(c *order.Command, o decideOptions) (order.Decision, error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	balance, err := t.account(c.UserID, o.provision)
	if err != nil {
		return order.Decision{}, err
	}
	if o.deferred {
		defer t.settle(c.UserID, c.Key)
	}
	if d, known := t.known(c); known && !(o.deferred && d.Receipt.State == order.Processing) {
		return d, nil
	}
	if rejection := t.refuse(c, balance); rejection != nil {
		rejection.Forgotten = c.Key != "" && !o.remember && !o.deferred
		receipt := t.receipt(c, o, order.Failed, o.render.Rejected(c.Operation, *rejection))
		remembered := c.Key != "" && !rejection.Forgotten
		if remembered {
			t.records[keyOf{c.UserID, string(c.Key)}] = receipt
		}
		return order.Decision{Kind: order.Rejected, Receipt: receipt, Remembered: remembered, Rejection: rejection}, nil
	}
	orders := t.insert(c, o.at)
	receipt := t.receipt(c, o, order.Succeeded, o.render.Created(c.Operation, orders))
	if c.Key != "" {
		t.records[keyOf{c.UserID, string(c.Key)}] = receipt
	}
	return order.Decision{Kind: order.Created, Receipt: receipt, Remembered: c.Key != ""}, nil
}

// account returns the user's balance, and makes the account where that is provided for.
func (t *tables) account(userID string, provision *order.Amount) (order.Amount, error) {
	balance, known := t.balances[userID]
	switch {
	case known:
		return balance, nil
	case provision == nil:
		return 0, order.Undecided(order.OutcomeNotCommitted, order.ErrUnknownUser)
	}
	t.balances[userID] = *provision
	return *provision, nil
}

// known answers a command whose key is recorded already.
func (t *tables) known(c *order.Command) (order.Decision, bool) {
	r, ok := t.records[keyOf{c.UserID, string(c.Key)}]
	if !ok { // no record has an empty key
		return order.Decision{}, false
	}
	r.Server = t.server
	switch {
	case r.Digest != c.Digest:
		return order.Decision{Kind: order.Reused, Receipt: r}, true
	case r.State == order.Processing:
		return order.Decision{Kind: order.InProgress, Receipt: r, Remembered: true}, true
	default:
		return order.Decision{Kind: order.Replayed, Receipt: r, Remembered: true}, true
	}
}

func (t *tables) receipt(c *order.Command, o decideOptions, state order.State, r order.Response) order.Receipt {
	seen := o.at
	if o.deferred { // when it was accepted
		seen = t.records[keyOf{c.UserID, string(c.Key)}].FirstSeen
	}
	return order.Receipt{Digest: c.Digest, State: state, FirstSeen: seen, Server: t.server, Response: r}
}

// refuse returns why the command cannot be carried out, nil when it can.
func (t *tables) refuse(c *order.Command, balance order.Amount) *order.Rejection {
	if conflicts := t.conflicts(c); len(conflicts) > 0 {
		return &order.Rejection{Code: order.OrderAlreadyExists, Conflicts: conflicts}
	}
	var sum order.Amount
	need := map[string]int64{}
	for i := range c.Lines {
		sum += c.Lines[i].Amount
		need[c.Lines[i].SKU] += c.Lines[i].Quantity
	}
	if sum > balance {
		return &order.Rejection{Code: order.InsufficientBalance}
	}
	for i := range c.Lines {
		sku := c.Lines[i].SKU
		if available, limited := t.stock[sku]; limited && need[sku] > available {
			return &order.Rejection{Code: order.OutOfStock, SKU: sku}
		}
	}
	return nil
}

func (t *tables) conflicts(c *order.Command) []order.Conflict {
	var conflicts []order.Conflict
	seen := map[string]bool{}
	for i := range c.Lines {
		line := &c.Lines[i]
		number := line.ExternalOrderNo
		if number == "" {
			continue
		}
		if id, taken := t.numbers[numberOf{c.UserID, number}]; taken {
			conflict := order.Conflict{Row: i, ExternalOrderNo: number, Reason: order.Exists, OrderID: id}
			if fields := differences(t.orders[id].Line, *line); len(fields) > 0 {
				conflict.Reason, conflict.Fields = order.ExistsDifferent, fields
			}
			conflicts = append(conflicts, conflict)
		} else if seen[number] {
			conflicts = append(conflicts, order.Conflict{Row: i, ExternalOrderNo: number, Reason: order.DuplicateInBatch})
		}
		seen[number] = true
	}
	return conflicts
}

// differences names the members in which two lines differ, in wire order.
func differences(a, b order.Line) []string {
	var fields []string
	if a.SKU != b.SKU {
		fields = append(fields, "sku")
	}
	if a.Quantity != b.Quantity {
		fields = append(fields, "quantity")
	}
	if a.Amount != b.Amount {
		fields = append(fields, "amount")
	}
	return fields
}

func (t *tables) insert(c *order.Command, at time.Time) []order.Order {
	orders := make([]order.Order, len(c.Lines))
	for i, line := range c.Lines {
		o := order.Order{
			ID: order.NewID(at), UserID: c.UserID, Line: line, Status: order.Pending,
			Key: c.Key, LineNo: i, CreatedAt: at, UpdatedAt: at,
		}
		orders[i] = o
		t.orders[o.ID] = o
		if line.ExternalOrderNo != "" {
			t.numbers[numberOf{c.UserID, line.ExternalOrderNo}] = o.ID
		}
		t.balances[c.UserID] -= line.Amount
		if _, limited := t.stock[line.SKU]; limited {
			t.stock[line.SKU] -= line.Quantity
			t.limited[o.ID] = true
		}
	}
	t.commits++
	return orders
}
