package ordertest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncegate/oncegate/order"
)

// Ledger is an in-memory ledger, order book and account store. Its mutex plays
// the part of the user's lock, a map the part of the unique index.
type Ledger struct {
	render order.Renderer
	now    func() time.Time
	data   *tables // shared by siblings

	mu        sync.Mutex // guards what follows; never held while data is locked
	remember  bool
	provision *order.Amount
	before    func(c *order.Command) error
	after     func(c *order.Command, d order.Decision) error
	reading   func(userID string, key order.Key) error
	changes   ChangeFaults
	gate      chan struct{} // closed by Release; nil when nothing is held
	arrived   chan *order.Command
	calls     Calls
}

// Calls counts the calls of one ledger.
type Calls struct{ Decide, Find, Confirm int }

var (
	_ order.Ledger   = (*Ledger)(nil)
	_ order.Book     = (*Ledger)(nil)
	_ order.Accounts = (*Ledger)(nil)
)

// NewLedger makes an empty ledger that remembers rejections and knows no user.
func NewLedger(r order.Renderer, now func() time.Time) *Ledger {
	return &Ledger{render: r, now: now, data: newTables(), remember: true}
}

// Sibling makes a second ledger on the same data, as a second gateway has it.
// Settings are copied; holds, faults and counts are not.
func (l *Ledger) Sibling() *Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &Ledger{render: l.render, now: l.now, data: l.data, remember: l.remember, provision: l.provision}
}

// Decide implements [order.Ledger].
func (l *Ledger) Decide(ctx context.Context, c *order.Command) (order.Decision, error) {
	before, after, err := l.start(ctx, c)
	if err != nil {
		return order.Decision{}, err
	}
	if before != nil {
		if err := before(c); err != nil {
			return order.Decision{}, undecided(err)
		}
	}
	d, err := l.data.decide(c, l.options(false))
	if err != nil {
		return order.Decision{}, err
	}
	if after != nil {
		if err := after(c, d); err != nil {
			return order.Decision{}, undecided(err)
		}
	}
	return d, nil
}

// start counts the call, waits while the ledger is held and refuses a command
// whose context has ended, for it has not been started.
func (l *Ledger) start(ctx context.Context, c *order.Command) (before func(*order.Command) error, after func(*order.Command, order.Decision) error, err error) {
	l.mu.Lock()
	l.calls.Decide++
	gate, arrived := l.gate, l.arrived
	before, after = l.before, l.after
	l.mu.Unlock()

	if gate != nil {
		select {
		case arrived <- c:
		default: // more arrivals than any test looks at
		}
		select {
		case <-gate:
		case <-ctx.Done():
		}
	}
	if cerr := ctx.Err(); cerr != nil {
		return nil, nil, order.Undecided(order.OutcomeNotCommitted, fmt.Errorf("%w: %w", order.ErrUnavailable, cerr))
	}
	return before, after, nil
}

// Find implements [order.Ledger].
func (l *Ledger) Find(ctx context.Context, userID string, key order.Key) (order.Receipt, error) {
	l.mu.Lock()
	l.calls.Find++
	l.mu.Unlock()
	return l.read(ctx, userID, key)
}

// Confirm implements [order.Ledger].
func (l *Ledger) Confirm(ctx context.Context, userID string, key order.Key) (order.Receipt, error) {
	l.mu.Lock()
	l.calls.Confirm++
	l.mu.Unlock()
	return l.read(ctx, userID, key)
}

func (l *Ledger) read(ctx context.Context, userID string, key order.Key) (order.Receipt, error) {
	l.mu.Lock()
	reading := l.reading
	l.mu.Unlock()
	if reading != nil {
		if err := reading(userID, key); err != nil {
			return order.Receipt{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return order.Receipt{}, fmt.Errorf("%w: %w", order.ErrUnavailable, err)
	}
	return l.data.record(userID, key)
}

// Identity implements [order.Ledger].
func (l *Ledger) Identity() order.ServerID { return l.data.identity() }

// Order implements [order.Book].
func (l *Ledger) Order(ctx context.Context, userID string, id order.ID) (order.Order, error) {
	if err := ctx.Err(); err != nil {
		return order.Order{}, fmt.Errorf("%w: %w", order.ErrUnavailable, err)
	}
	return l.data.order(userID, id)
}

// Orders implements [order.Book].
func (l *Ledger) Orders(ctx context.Context, userID string, before order.ID, limit int) ([]order.Order, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", order.ErrUnavailable, err)
	}
	return l.data.list(userID, before, limit), nil
}

// SetBalance implements [order.Accounts].
func (l *Ledger) SetBalance(ctx context.Context, userID string, balance order.Amount) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", order.ErrUnavailable, err)
	}
	l.data.setBalance(userID, balance)
	return nil
}

// SetStock implements [order.Accounts].
func (l *Ledger) SetStock(ctx context.Context, sku string, available int64) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", order.ErrUnavailable, err)
	}
	l.data.setStock(sku, available)
	return nil
}

func (l *Ledger) clock() time.Time { return l.now().UTC().Truncate(order.TimePrecision) }

// undecided makes sure that an injected fault says what is known of the order.
func undecided(err error) error {
	return order.Undecided(order.OutcomeOf(err), err)
}
