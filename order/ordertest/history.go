package ordertest

import (
	"time"

	"github.com/oncegate/oncegate/order"
)

// history is what is recorded of changes of state.
type history struct {
	events   []event
	claimed  map[string]order.ID // by provider reference: the order that it paid
	owed     map[paymentOf]bool  // payments that are owed back
	consumed map[messageOf]consumed
	parked   map[messageOf]map[order.Digest][]byte // bodies
}

type (
	messageOf struct{ consumer, id string }

	paymentOf struct {
		orderID   order.ID
		reference string
		amount    order.Amount
	}

	event struct {
		orderID    order.ID
		event      order.EventType
		effect     order.Effect
		refundOwed bool
	}

	consumed struct {
		digest order.Digest
		result order.Transition
	}
)

func newHistory() history {
	return history{
		claimed:  map[string]order.ID{},
		owed:     map[paymentOf]bool{},
		consumed: map[messageOf]consumed{},
		parked:   map[messageOf]map[order.Digest][]byte{},
	}
}

// change moves an order, if it can be moved, and records the event.
func (t *tables) change(o order.Order, to order.Status, e order.EventType, at time.Time) order.Transition {
	result := t.move(o, to, at)
	t.history.events = append(t.history.events, event{o.ID, e, result.Effect, result.RefundOwed})
	return result
}

func (t *tables) move(o order.Order, to order.Status, at time.Time) order.Transition {
	effect := order.Next(o.Status, to)
	if effect == order.Applied {
		o.Status, o.UpdatedAt = to, at
		t.orders[o.ID] = o
	}
	return order.Transition{Effect: effect, Order: o}
}

func (t *tables) cancel(userID string, id order.ID, at time.Time) (order.Transition, error) {
	o, ok := t.orders[id]
	if !ok || o.UserID != userID {
		return order.Transition{}, order.ErrNotFound
	}
	result := t.change(o, order.Cancelled, order.EventCancelled, at)
	if result.Effect == order.Applied {
		t.balances[userID] += o.Line.Amount
		if t.limited[id] { // what was taken without a limit is owed to no stock
			t.stock[o.Line.SKU] += o.Line.Quantity
		}
	}
	return result, nil
}

func (t *tables) ship(id order.ID, at time.Time) (order.Transition, error) {
	o, ok := t.orders[id]
	if !ok {
		return order.Transition{}, order.ErrNotFound
	}
	return t.change(o, order.Shipped, order.EventShipped, at), nil
}

func (t *tables) apply(m *order.PaymentMessage, at time.Time) (order.Transition, error) {
	o, there := t.orders[m.OrderID]
	name := messageOf{m.Consumer, m.MessageID}
	before, seen := t.history.consumed[name]
	switch {
	case seen && before.digest != m.Digest:
		if t.history.parked[name] == nil {
			t.history.parked[name] = map[order.Digest][]byte{}
		}
		t.history.parked[name][m.Digest] = m.Body
		return order.Transition{Effect: order.Parked}, nil
	case seen:
		result := before.result
		result.Duplicate, result.Order = true, o
		return result, nil
	case !there:
		return order.Transition{}, order.ErrNotFound // and nothing that would swallow the retry
	}
	result := t.pay(o, m, at)
	if result.RefundOwed { // one payment is owed back once
		payment := paymentOf{o.ID, m.ProviderReference, m.Amount}
		result.RefundOwed = !t.history.owed[payment]
		t.history.owed[payment] = true
	}
	t.history.events = append(t.history.events, event{o.ID, m.Type, result.Effect, result.RefundOwed})
	t.history.consumed[name] = consumed{m.Digest, result}
	return result, nil
}

// pay decides what an event that was not seen before comes to.
func (t *tables) pay(o order.Order, m *order.PaymentMessage, at time.Time) order.Transition {
	if m.Type != order.EventPaymentSucceeded {
		return order.Transition{Effect: order.Noted, Order: o}
	}
	by, claimed := t.history.claimed[m.ProviderReference]
	switch {
	case claimed && by == o.ID:
		return order.Transition{Effect: order.Next(o.Status, order.Paid), Order: o}
	case claimed: // the money went to another order
		return order.Transition{Effect: order.Impossible, Order: o}
	case m.Amount != o.Line.Amount:
		return order.Transition{Effect: order.WrongAmount, RefundOwed: true, Order: o}
	}
	result := t.move(o, order.Paid, at)
	if result.Effect == order.Applied {
		t.history.claimed[m.ProviderReference] = o.ID
	}
	// A second payment, or one for a cancelled order, is money without a use.
	result.RefundOwed = result.Effect != order.Applied
	return result
}

func (t *tables) countEvents(match func(e event) bool) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.history.events {
		if match(e) {
			n++
		}
	}
	return n
}

func (t *tables) countMessages(consumer string) (done, parked int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.history.consumed {
		if name.consumer == consumer {
			done++
		}
	}
	for name, bodies := range t.history.parked {
		if name.consumer == consumer {
			parked += len(bodies)
		}
	}
	return done, parked
}
