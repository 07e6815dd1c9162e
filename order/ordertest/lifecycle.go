package ordertest

import (
	"context"
	"fmt"
	"time"

	"github.com/oncegate/oncegate/order"
)

var _ order.Lifecycle = (*Ledger)(nil)

// ChangeFaults are what goes wrong with changes of state. A hook may also hold
// a change for as long as a test wants.
type ChangeFaults struct {
	// Before runs before each change. Its error is what the change ends with,
	// and nothing is stored.
	Before func(ctx context.Context) error
	// After runs after each change. Its error is what the change ends with
	// although it is stored.
	After func(ctx context.Context) error
}

// SetChangeFaults sets the faults of Cancel, Ship and Apply.
func (l *Ledger) SetChangeFaults(f ChangeFaults) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = f
}

// Cancel implements [order.Lifecycle].
func (l *Ledger) Cancel(ctx context.Context, userID string, id order.ID) (order.Transition, error) {
	return l.change(ctx, func(at time.Time) (order.Transition, error) { return l.data.cancel(userID, id, at) })
}

// Ship implements [order.Lifecycle].
func (l *Ledger) Ship(ctx context.Context, id order.ID) (order.Transition, error) {
	return l.change(ctx, func(at time.Time) (order.Transition, error) { return l.data.ship(id, at) })
}

// Apply implements [order.Lifecycle].
func (l *Ledger) Apply(ctx context.Context, m order.PaymentMessage) (order.Transition, error) {
	return l.change(ctx, func(at time.Time) (order.Transition, error) { return l.data.apply(&m, at) })
}

// change runs one transaction that changes a state.
func (l *Ledger) change(ctx context.Context, work func(at time.Time) (order.Transition, error)) (order.Transition, error) {
	l.mu.Lock()
	faults := l.changes
	l.mu.Unlock()
	if faults.Before != nil {
		if err := faults.Before(ctx); err != nil {
			return order.Transition{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return order.Transition{}, fmt.Errorf("%w: %w", order.ErrUnavailable, err)
	}
	result, err := func() (order.Transition, error) {
		l.data.mu.Lock()
		defer l.data.mu.Unlock()
		return work(l.clock())
	}()
	if err == nil && faults.After != nil {
		if err := faults.After(ctx); err != nil {
			return order.Transition{}, err
		}
	}
	return result, err
}

// CountEvents returns how many events of an order had this effect; with an
// empty effect, how many it has at all.
func (l *Ledger) CountEvents(_ context.Context, id order.ID, effect order.Effect) (int, error) {
	return l.data.countEvents(func(e event) bool {
		return e.orderID == id && (effect == "" || e.effect == effect)
	}), nil
}

// CountRefunds returns how many events of an order owe a refund.
func (l *Ledger) CountRefunds(_ context.Context, id order.ID) (int, error) {
	return l.data.countEvents(func(e event) bool { return e.orderID == id && e.refundOwed }), nil
}

// CountMessages returns how many messages a consumer has dealt with, and how
// many contents it has parked.
func (l *Ledger) CountMessages(_ context.Context, consumer string) (done, parked int, err error) {
	done, parked = l.data.countMessages(consumer)
	return done, parked, nil
}
