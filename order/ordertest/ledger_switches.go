package ordertest

import (
	"context"

	"github.com/oncegate/oncegate/order"
)

// arrivals is how many held commands a test can be told of.
const arrivals = 4096

// RememberRejections sets whether refusals are recorded. It is true at first.
func (l *Ledger) RememberRejections(yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remember = yes
}

// ProvisionUsers makes unknown users exist with this balance when they first
// order. Nil, as at first, refuses them.
func (l *Ledger) ProvisionUsers(balance *order.Amount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.provision = balance
}

// SetFault makes f run before each transaction. An error of f is what Decide
// ends with, and nothing is committed: let it be an [*order.UndecidedError], or
// it counts as unknown. A panic of f passes through. Nil takes the fault away.
func (l *Ledger) SetFault(f func(c *order.Command) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = f
}

// SetLostReply makes f run after each transaction. An error of f is what Decide
// ends with although the transaction is committed.
func (l *Ledger) SetLostReply(f func(c *order.Command, d order.Decision) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after = f
}

// SetReadFault makes f run before each Find and Confirm, which end with its error.
func (l *Ledger) SetReadFault(f func(userID string, key order.Key) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reading = f
}

// Block holds every further Decide before its transaction until [Ledger.Release]
// or the end of its context, which withdraws it. Each held command is sent to the
// channel, so that a test can wait for its arrival.
func (l *Ledger) Block() <-chan *order.Command {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gate == nil {
		l.gate = make(chan struct{})
		l.arrived = make(chan *order.Command, arrivals)
	}
	return l.arrived
}

// Release lets go of what [Ledger.Block] holds.
func (l *Ledger) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gate != nil {
		close(l.gate)
		l.gate, l.arrived = nil, nil
	}
}

// Calls returns how often this ledger was asked.
func (l *Ledger) Calls() Calls {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// CommitCount returns how many commands made orders, over all siblings.
func (l *Ledger) CommitCount() int { return l.data.commitCount() }

// SetIdentity makes another server answer from now on, as after a failover.
func (l *Ledger) SetIdentity(id order.ServerID) { l.data.setIdentity(id) }

// Lose removes what a key has committed, as a failover to a replica does that
// had not received it. Balances and stock go back too.
func (l *Ledger) Lose(userID string, key order.Key) { l.data.lose(userID, key) }

// Balance returns a user's balance, [order.ErrNotFound] for an unknown user.
func (l *Ledger) Balance(_ context.Context, userID string) (order.Amount, error) {
	return l.data.balance(userID)
}

// Stock returns what is available of a SKU, and whether it is limited at all.
func (l *Ledger) Stock(_ context.Context, sku string) (available int64, limited bool, err error) {
	available, limited = l.data.available(sku)
	return available, limited, nil
}

// CountOrders returns how many orders a user has.
func (l *Ledger) CountOrders(_ context.Context, userID string) (int, error) {
	return l.data.countOrders(userID), nil
}

// CountRecords returns how many requests of a user are remembered.
func (l *Ledger) CountRecords(_ context.Context, userID string) (int, error) {
	return l.data.countRecords(userID), nil
}
