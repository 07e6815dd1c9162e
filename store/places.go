package store

import (
	"context"
	"sync"

	"github.com/oncegate/oncegate/order"
)

// besideLedger is how many transactions there may be beside those of the
// ledger's workers: changes of states, look-ups behind a user's lock.
const besideLedger = 4

// places are for those transactions. One row has one place at most: a second
// transaction would wait for the first one's lock in the database, and a row that
// somebody holds would take the places of everybody else.
type places struct {
	free  chan struct{}
	mu    sync.Mutex
	turns map[lockedRow]*rowTurn
}

// lockedRow names a row that a transaction may wait for.
type lockedRow string

const settingsRow lockedRow = "config_changes"

func userRow(id string) lockedRow    { return lockedRow("users " + id) }
func stockRow(sku string) lockedRow  { return lockedRow("stock " + sku) }
func orderRow(id order.ID) lockedRow { return lockedRow("orders " + string(id[:])) }

// awaited finds the rows that a transaction may wait for.
type awaited func(ctx context.Context) ([]lockedRow, error)

// waitingFor is for a transaction whose rows are known.
func waitingFor(rows ...lockedRow) awaited {
	return func(context.Context) ([]lockedRow, error) { return rows, nil }
}

// rowTurn is whose it is to wait for a row.
type rowTurn struct {
	taken chan struct{}
	known int // by those who have it or wait for it
}

func newPlaces() *places {
	return &places{free: make(chan struct{}, besideLedger), turns: map[lockedRow]*rowTurn{}}
}

// take waits for the turns of all rows, in the order in which they are locked, which
// is the same for everybody: users, orders, stock. Then it waits for a place, until ctx
// ends. Who has one gives it back by leave.
func (p *places) take(ctx context.Context, rows ...lockedRow) (leave func(), err error) {
	var passes []func()
	pass := func() {
		for _, pass := range passes {
			pass()
		}
	}
	for _, row := range rows {
		next, err := p.await(ctx, row)
		if err != nil {
			pass()
			return nil, err
		}
		passes = append(passes, next)
	}
	select {
	case p.free <- struct{}{}:
		return func() { <-p.free; pass() }, nil
	case <-ctx.Done():
		pass()
		return nil, ctx.Err()
	}
}

// await waits for the turn of a row.
func (p *places) await(ctx context.Context, row lockedRow) (pass func(), err error) {
	p.mu.Lock()
	t := p.turns[row]
	if t == nil {
		t = &rowTurn{taken: make(chan struct{}, 1)}
		p.turns[row] = t
	}
	t.known++
	p.mu.Unlock()
	forget := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if t.known--; t.known == 0 {
			delete(p.turns, row)
		}
	}
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}
