package store

import (
	"slices"
	"time"

	"github.com/oncegate/oncegate/order"
)

// writes is what a transaction has to write.
type writes struct {
	now     instant
	orders  []order.Order
	stocked []bool // for each order: whether its SKU is limited
	records []writtenRecord
	settled []writtenRecord         // deferred requests that get their answer: updated, not inserted
	spent   map[string]order.Amount // by user
	taken   map[string]int64        // by limited SKU
	// What is left of balances and stock, of these and others.
	balances map[string]order.Amount
	stock    map[string]int64
}

type writtenRecord struct {
	user string
	key  order.Key
	*record
}

func (w *writes) empty() bool { return len(w.orders)+len(w.records)+len(w.settled) == 0 }

// plan decides the group in memory, in order of arrival. It changes the view as
// it goes, so that each command sees those before it.
func (w *worker) plan(v *view, group []*pending) ([]outcome, *writes) {
	outcomes := make([]outcome, len(group))
	out := &writes{
		now: instant{v.now}, spent: map[string]order.Amount{}, taken: map[string]int64{},
		balances: v.balances, stock: v.stock,
	}
	for i, p := range group {
		_, account := v.balances[p.cmd.UserID]
		switch rec, recorded := v.records[p.pair()]; {
		case !account:
			outcomes[i] = outcome{noAccount: true}
		case recorded && p.cmd.Key != "" && !(p.deferred && rec.receipt.State == order.Processing):
			outcomes[i] = known(p, rec)
			outcomes[i].writes = rec.receipt.Server == 0 // decided in this very group
		default:
			if o, made := v.byID[p.ids[0]]; made {
				outcomes[i] = outcome{decision: order.Decision{Kind: order.Created, Receipt: order.Receipt{
					Digest: p.cmd.Digest, State: order.Succeeded, FirstSeen: o.CreatedAt, Server: v.server,
					Response: w.s.o.Renderer.Created(p.cmd.Operation, ordersOf(p, o.CreatedAt)),
				}}}
				continue
			}
			outcomes[i] = w.planFresh(v, p, out)
		}
	}
	for _, rec := range slices.Concat(out.records, out.settled) {
		rec.receipt.Server = v.server
	}
	for i := range outcomes {
		outcomes[i].decision.Receipt.Server = v.server
	}
	return outcomes, out
}

// known answers a command whose key is recorded already.
func known(p *pending, rec *record) outcome {
	kind := order.Replayed
	var why *order.Rejection
	switch {
	case rec.receipt.Digest != p.cmd.Digest:
		kind = order.Reused
	case rec.receipt.State == order.Processing:
		kind = order.InProgress // accepted, to be carried out
	case !rec.orderID.IsZero() && rec.orderID == p.ids[0]:
		kind = order.Created // by an earlier attempt of this very command
	case p.refusal != nil && rec.receipt.State == order.Failed && rec.receipt.FirstSeen.Equal(p.refusedAt):
		kind, why = order.Rejected, p.refusal // likewise
	}
	return outcome{decision: order.Decision{Kind: kind, Receipt: rec.receipt, Remembered: true, Rejection: why}}
}

func (w *worker) planFresh(v *view, p *pending, out *writes) outcome {
	c := p.cmd
	receipt := order.Receipt{Digest: c.Digest, State: order.Failed, FirstSeen: v.now}
	rejection, refused := v.refuse(c)
	if refused {
		rejection.Forgotten = c.Key != "" && w.s.o.ForgetRejections && !p.deferred
		why := new(rejection)
		receipt.Response = w.s.o.Renderer.Rejected(c.Operation, rejection)
		if c.Key == "" || rejection.Forgotten {
			return outcome{decision: order.Decision{Kind: order.Rejected, Receipt: receipt, Rejection: why}}
		}
		w.record(v, p, out, receipt, order.ID{})
		return outcome{decision: order.Decision{Kind: order.Rejected, Receipt: receipt, Remembered: true, Rejection: why}, writes: true}
	}
	orders := ordersOf(p, v.now)
	for i := range orders {
		l := &orders[i].Line
		v.balances[c.UserID] -= l.Amount
		out.spent[c.UserID] += l.Amount
		_, limited := v.stock[l.SKU]
		out.stocked = append(out.stocked, limited)
		if limited {
			v.stock[l.SKU] -= l.Quantity
			out.taken[l.SKU] += l.Quantity
		}
		if l.ExternalOrderNo != "" {
			v.numbers[pair{c.UserID, l.ExternalOrderNo}] = orders[i]
		}
	}
	out.orders = append(out.orders, orders...)
	receipt.State = order.Succeeded
	receipt.Response = w.s.o.Renderer.Created(c.Operation, orders)
	if c.Key != "" {
		w.record(v, p, out, receipt, p.ids[0])
	}
	return outcome{decision: order.Decision{Kind: order.Created, Receipt: receipt, Remembered: c.Key != ""}, writes: true}
}

// record remembers an answer: for the commands behind it in the group, and in
// the table.
func (w *worker) record(v *view, p *pending, out *writes, receipt order.Receipt, first order.ID) {
	rec := &record{operation: p.cmd.Operation, receipt: receipt, orderID: first}
	written := writtenRecord{p.cmd.UserID, p.cmd.Key, rec}
	if old := v.records[p.pair()]; old != nil {
		if receipt.State != order.Failed { // whose time to be remembered begins now
			rec.receipt.FirstSeen = old.receipt.FirstSeen // when it was accepted
		}
		out.settled = append(out.settled, written)
	} else {
		out.records = append(out.records, written)
	}
	v.records[p.pair()] = rec
}

func ordersOf(p *pending, at time.Time) []order.Order {
	orders := make([]order.Order, len(p.cmd.Lines))
	for i := range orders {
		orders[i] = order.Order{
			ID: p.ids[i], UserID: p.cmd.UserID, Line: p.cmd.Lines[i], Status: order.Pending,
			Key: p.cmd.Key, LineNo: i, CreatedAt: at, UpdatedAt: at,
		}
	}
	return orders
}

// refuse says why a command cannot become orders now: a taken business number
// first (all of them are named), then the balance, then the stock.
func (v *view) refuse(c *order.Command) (order.Rejection, bool) {
	if conflicts := v.conflicts(c); len(conflicts) > 0 {
		return order.Rejection{Code: order.OrderAlreadyExists, Conflicts: conflicts}, true
	}
	var total order.Amount
	for i := range c.Lines {
		total += c.Lines[i].Amount
	}
	if total > v.balances[c.UserID] {
		return order.Rejection{Code: order.InsufficientBalance}, true
	}
	var wanted map[string]int64
	for i := range c.Lines {
		l := &c.Lines[i]
		available, limited := v.stock[l.SKU]
		if !limited {
			continue
		}
		if wanted == nil {
			wanted = map[string]int64{}
		}
		wanted[l.SKU] += l.Quantity
		if wanted[l.SKU] > available {
			return order.Rejection{Code: order.OutOfStock, SKU: l.SKU}, true
		}
	}
	return order.Rejection{}, false
}

func (v *view) conflicts(c *order.Command) []order.Conflict {
	var conflicts []order.Conflict
	var seen map[string]bool
	for i := range c.Lines {
		l := &c.Lines[i]
		if l.ExternalOrderNo == "" {
			continue
		}
		if existing, taken := v.numbers[pair{c.UserID, l.ExternalOrderNo}]; taken {
			conflict := order.Conflict{Row: i, ExternalOrderNo: l.ExternalOrderNo, Reason: order.Exists, OrderID: existing.ID}
			if conflict.Fields = differences(l, &existing.Line); conflict.Fields != nil {
				conflict.Reason = order.ExistsDifferent
			}
			conflicts = append(conflicts, conflict)
			continue
		}
		if seen[l.ExternalOrderNo] {
			conflicts = append(conflicts, order.Conflict{Row: i, ExternalOrderNo: l.ExternalOrderNo, Reason: order.DuplicateInBatch})
			continue
		}
		if seen == nil {
			seen = map[string]bool{}
		}
		seen[l.ExternalOrderNo] = true
	}
	return conflicts
}

// differences names the members in which two lines with one business number differ.
func differences(a, b *order.Line) []string {
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
