package store

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"

	"github.com/oncegate/oncegate/order"
)

var _ order.Lifecycle = (*Store)(nil)

// Cancel implements [order.Lifecycle]. Like the ledger it locks the user's row
// before any other. Orders of others it neither locks, waits for nor reads.
func (s *Store) Cancel(ctx context.Context, userID string, id order.ID) (order.Transition, error) {
	var result order.Transition
	// By an attempt whose COMMIT was not answered, if there is another. If it was
	// lost, and somebody else did the same since, both hear that they did it.
	cancelled := false
	err := s.inTransaction(ctx, "cancel an order", func(ctx context.Context) ([]lockedRow, error) {
		return s.rowsOfCancelling(ctx, userID, id)
	}, func(t *transaction) error {
		var balance money
		t.q.reset("SELECT balance FROM users WHERE user_id = ")
		t.q.bind(userID)
		t.q.add(t.d.forUpdate)
		if err := t.rows(func(rows *sql.Rows) error { return rows.Scan(&balance) }); err != nil {
			return err
		}
		o, err := t.lockOrder(id)
		if err != nil {
			return err
		}
		if result, err = t.move(o, order.Cancelled); err != nil {
			return err
		}
		if cancelled && result.Effect == order.AlreadyThere {
			result.Effect = order.Applied
			return nil
		}
		if result.Effect == order.Applied {
			if err := t.giveBack(o, balance.Amount); err != nil {
				return err
			}
		}
		err = t.insertEvent(id, order.EventCancelled, &result, nil)
		cancelled = err == nil && result.Effect == order.Applied
		return err
	})
	return came(result, err)
}

// came is what a change came to: nothing that is known, where it was not committed
// as far as anybody knows.
func came(to order.Transition, err error) (order.Transition, error) {
	if err != nil {
		return order.Transition{}, err
	}
	return to, nil
}

// Ship implements [order.Lifecycle].
func (s *Store) Ship(ctx context.Context, id order.ID) (order.Transition, error) {
	var result order.Transition
	shipped := false // as in Cancel
	err := s.inTransaction(ctx, "ship an order", waitingFor(orderRow(id)), func(t *transaction) error {
		o, err := t.lockOrder(id)
		if err != nil {
			return err
		}
		if result, err = t.move(o, order.Shipped); err != nil {
			return err
		}
		if shipped && result.Effect == order.AlreadyThere {
			result.Effect = order.Applied
			return nil
		}
		err = t.insertEvent(id, order.EventShipped, &result, nil)
		shipped = err == nil && result.Effect == order.Applied
		return err
	})
	return came(result, err)
}

// rowsOfCancelling are those that a cancellation waits for, or an error where the
// order is not there or somebody else's: an order keeps its user, and what it took.
func (s *Store) rowsOfCancelling(ctx context.Context, userID string, id order.ID) ([]lockedRow, error) {
	q := query{d: s.d}
	q.reset("SELECT sku, stock_taken, status FROM orders WHERE order_id = ")
	q.bind(id[:])
	q.add(" AND user_id = ")
	q.bind(userID)
	var rows []lockedRow
	err := scanRows(ctx, s.reads, &q, func(found *sql.Rows) error {
		var sku string
		var taken bool
		var status order.Status
		if err := found.Scan(&sku, &taken, &status); err != nil {
			return err
		}
		rows = []lockedRow{userRow(userID), orderRow(id)}
		if taken && order.Next(status, order.Cancelled) == order.Applied { // or else it gives none back, ever
			rows = append(rows, stockRow(sku))
		}
		return nil
	})
	if err == nil && rows == nil {
		err = sql.ErrNoRows
	}
	return rows, err
}

// lockOrder locks and reads one order.
func (t *transaction) lockOrder(id order.ID) (order.Order, error) {
	var found []order.Order
	t.q.reset("SELECT " + orderColumns + " FROM orders WHERE order_id = ")
	t.q.bind(id[:])
	t.q.add(t.d.forUpdate)
	err := t.rows(func(rows *sql.Rows) error {
		o, err := scanOrder(rows)
		found = append(found, o)
		return err
	})
	if err == nil && len(found) == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return order.Order{}, err
	}
	return found[0], nil
}

// move is the conditional update of a state: one row means that it happened
// now. The condition stays although the row is locked; it is what holds against
// a writer that takes no lock.
func (t *transaction) move(o order.Order, to order.Status) (order.Transition, error) {
	result := order.Transition{Effect: order.Next(o.Status, to), Order: o}
	if result.Effect != order.Applied {
		return result, nil
	}
	t.q.reset("UPDATE orders SET status = ")
	t.q.bind(string(to))
	t.q.add(", updated_at = " + t.d.now + " WHERE order_id = ")
	t.q.bind(o.ID[:])
	t.q.add(" AND status = ")
	t.q.bind(string(o.Status))
	if err := t.exec(1); err != nil {
		return result, err
	}
	moved, err := t.lockOrder(o.ID)
	result.Order = moved
	return result, err
}

// giveBack returns the amount to a balance that is locked, and the stock that was
// taken. As in [transaction.write] a number is replaced, not counted up.
func (t *transaction) giveBack(o order.Order, balance order.Amount) error {
	if err := t.replace("users", "user_id", "balance", []string{o.UserID}, func(_ string, was bool) {
		if was {
			t.q.amount(balance)
		} else {
			t.q.amount(balance + o.Line.Amount)
		}
	}); err != nil {
		return err
	}
	var limited []string // no row: nothing had been taken
	var available int64
	t.q.reset("SELECT available FROM stock WHERE sku = ")
	t.q.bind(o.Line.SKU)
	t.q.add(" AND EXISTS (SELECT 1 FROM orders WHERE order_id = ")
	t.q.bind(o.ID[:])
	t.q.add(" AND stock_taken)" + t.d.forUpdate)
	if err := t.rows(func(rows *sql.Rows) error {
		limited = []string{o.Line.SKU}
		return rows.Scan(&available)
	}); err != nil {
		return err
	}
	return t.replace("stock", "sku", "available", limited, func(_ string, was bool) {
		if was {
			t.q.bind(available)
		} else {
			t.q.bind(available + o.Line.Quantity)
		}
	})
}

// insertEvent records what a change came to.
func (t *transaction) insertEvent(id order.ID, event order.EventType, result *order.Transition, m *order.PaymentMessage) error {
	q := t.q
	q.reset("INSERT INTO order_events (order_id, event, effect, refund_owed, amount, provider_reference, claimed_reference, created_at) VALUES (")
	for _, v := range []any{id[:], string(event), string(result.Effect), result.RefundOwed} {
		q.bind(v)
		q.add(",")
	}
	if m == nil {
		q.add("NULL,NULL,NULL,")
	} else {
		q.amount(m.Amount)
		q.add(",")
		q.bind(m.ProviderReference)
		q.add(",")
		var claimed any
		if event == order.EventPaymentSucceeded && result.Effect == order.Applied {
			claimed = m.ProviderReference
		}
		q.bind(claimed)
		q.add(",")
	}
	q.add(t.d.now + ")")
	return t.exec(1)
}

// inTransaction runs work and commits it, again from the start after any fault
// that a retry may mend. The work must come to the same end when an earlier
// attempt, whose COMMIT was not answered, turns out to have been committed.
func (s *Store) inTransaction(ctx context.Context, doing string, rows awaited, work func(*transaction) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*s.o.ReadTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := s.once(ctx, rows, work)
		if err == nil {
			return nil
		}
		f := s.faultOf(err)
		delay := min(lastDelay, firstDelay<<min(attempt, 10))
		if f == faultPermanent || attempt >= maxAttempts || !pause(ctx, delay/2+rand.N(delay)) { //nolint:gosec // G404: jitter
			return s.translate(doing, err)
		}
		s.metrics.retries[f].Inc()
	}
}

func (s *Store) once(ctx context.Context, rows awaited, work func(*transaction) error) error {
	first, err := rows(ctx)
	if err != nil {
		return err
	}
	t, err := s.beginBeside(ctx, first...)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return s.carryOut(t, work) //nolint:contextcheck // the transaction has it
}
