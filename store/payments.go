package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/oncegate/oncegate/order"
)

// Apply implements [order.Lifecycle]. The order's row is locked first: two
// deliveries of one message, and two messages for one order, follow each other.
func (s *Store) Apply(ctx context.Context, m order.PaymentMessage) (order.Transition, error) {
	var result order.Transition
	recorded := false // as in Cancel
	err := s.inTransaction(ctx, "apply a payment event", waitingFor(orderRow(m.OrderID)), func(t *transaction) error {
		o, missing := t.lockOrder(m.OrderID)
		if missing != nil && !errors.Is(missing, sql.ErrNoRows) {
			return missing
		}
		consumed, digest, err := t.consumed(&m)
		switch {
		case err != nil:
			return err
		case digest != nil && *digest != m.Digest:
			result = order.Transition{Effect: order.Parked}
			return t.park(&m)
		case digest != nil:
			result = consumed
			result.Duplicate, result.Order = !recorded, o
			return nil
		case missing != nil:
			return missing // not there yet: leave nothing that would swallow the retry
		}
		if result, err = t.pay(o, &m); err != nil {
			return err
		}
		if err := t.insertEvent(o.ID, m.Type, &result, &m); err != nil {
			return err
		}
		err = t.insertConsumed(&m, &result)
		recorded = err == nil
		return err
	})
	return came(result, err)
}

// pay decides what an event that was not seen before comes to. One payment is owed
// back once, however many messages tell of it.
func (t *transaction) pay(o order.Order, m *order.PaymentMessage) (order.Transition, error) {
	result, err := t.use(o, m)
	if err == nil && result.RefundOwed {
		result.RefundOwed, err = t.notOwedYet(m)
	}
	return result, err
}

// use makes use of the money that an event tells of, where the order has one.
func (t *transaction) use(o order.Order, m *order.PaymentMessage) (order.Transition, error) {
	if m.Type != order.EventPaymentSucceeded {
		return order.Transition{Effect: order.Noted, Order: o}, nil
	}
	claimedBy, err := t.claimant(m.ProviderReference)
	switch {
	case err != nil:
		return order.Transition{}, err
	case claimedBy == o.ID:
		return order.Transition{Effect: order.Next(o.Status, order.Paid), Order: o}, nil
	case !claimedBy.IsZero():
		return order.Transition{Effect: order.Impossible, Order: o}, nil // the money went to another order
	case m.Amount != o.Line.Amount:
		return order.Transition{Effect: order.WrongAmount, RefundOwed: true, Order: o}, nil
	}
	result, err := t.move(o, order.Paid)
	// A second payment, or one for a cancelled order, is money without a use.
	result.RefundOwed = err == nil && result.Effect != order.Applied
	return result, err
}

// notOwedYet reports whether no event has a refund of this payment on record. The
// order's lock makes it true.
func (t *transaction) notOwedYet(m *order.PaymentMessage) (bool, error) {
	t.q.reset("SELECT event_id FROM order_events WHERE order_id = ")
	t.q.bind(m.OrderID[:])
	t.q.add(" AND provider_reference = ")
	t.q.bind(m.ProviderReference)
	t.q.add(" AND amount = ")
	t.q.amount(m.Amount)
	t.q.add(" AND refund_owed LIMIT 1")
	none := true
	err := t.rows(func(rows *sql.Rows) error {
		none = false
		return rows.Scan(new(int64))
	})
	return none, err
}

// claimant returns the order that a payment took effect on, or zero.
func (t *transaction) claimant(reference string) (id order.ID, err error) {
	t.q.reset("SELECT order_id FROM order_events WHERE claimed_reference = ")
	t.q.bind(reference)
	err = t.rows(func(rows *sql.Rows) error {
		var b []byte
		err := rows.Scan(&b)
		copy(id[:], b)
		return err
	})
	return id, err
}

// consumed returns what an earlier delivery of the message came to.
func (t *transaction) consumed(m *order.PaymentMessage) (result order.Transition, digest *order.Digest, err error) {
	t.q.reset("SELECT digest, effect, refund_owed FROM consumed_messages WHERE consumer = ")
	t.q.bind(m.Consumer)
	t.q.add(" AND message_id = ")
	t.q.bind(m.MessageID)
	err = t.rows(func(rows *sql.Rows) error {
		var b []byte
		err := rows.Scan(&b, &result.Effect, &result.RefundOwed)
		digest = new(order.Digest)
		copy(digest[:], b)
		return err
	})
	return result, digest, err
}

func (t *transaction) insertConsumed(m *order.PaymentMessage, result *order.Transition) error {
	q := t.q
	q.reset("INSERT INTO consumed_messages (consumer, message_id, digest, order_id, effect, refund_owed, created_at) VALUES (")
	for _, v := range []any{m.Consumer, m.MessageID, m.Digest[:], m.OrderID[:], string(result.Effect), result.RefundOwed} {
		q.bind(v)
		q.add(",")
	}
	q.add(t.d.now + ")")
	return t.exec(1)
}

// park keeps a message whose id was used for another content, once.
func (t *transaction) park(m *order.PaymentMessage) error {
	q := t.q
	q.reset("INSERT INTO parked_messages (consumer, message_id, digest, body, created_at) VALUES (")
	for _, v := range []any{m.Consumer, m.MessageID, m.Digest[:], m.Body} {
		q.bind(v)
		q.add(",")
	}
	q.add(t.d.now + ")" + t.d.onDuplicate("consumer, message_id, digest") + "created_at = created_at")
	_, err := t.conn.ExecContext(t.ctx, string(q.text), q.args...)
	return err
}
