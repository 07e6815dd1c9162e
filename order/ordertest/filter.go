package ordertest

import (
	"context"
	"sync"
	"time"

	"github.com/oncegate/oncegate/order"
)

// Filter is an in-memory filter with both tiers: flights of this process, and
// marks and receipts that siblings share as they would share Redis. Nothing in
// it expires.
type Filter struct {
	now     func() time.Time
	shared  *entries
	mu      sync.Mutex // guards flights and down; taken before shared.mu
	flights map[order.Attempt]*flight
	down    bool
}

var _ order.Filter = (*Filter)(nil)

// NewFilter makes an empty filter.
func NewFilter(now func() time.Time) *Filter {
	return &Filter{now: now, shared: &entries{byKey: map[keyOf]entry{}}, flights: map[order.Attempt]*flight{}}
}

// Sibling makes the filter of another process on the same shared tier.
func (f *Filter) Sibling() *Filter {
	return &Filter{now: f.now, shared: f.shared, flights: map[order.Attempt]*flight{}}
}

// Admit implements [order.Filter].
func (f *Filter) Admit(_ context.Context, a order.Attempt) order.Admission {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl := f.flights[a]; fl != nil {
		return order.Admission{Advice: order.Joined, Layer: order.LayerProcess, Flight: fl}
	}
	fl := &flight{done: make(chan struct{})}
	f.flights[a] = fl
	t := &ticket{filter: f, attempt: a, flight: fl}
	if f.down {
		return order.Admission{Advice: order.Bypassed, Ticket: t}
	}
	held, ours := f.shared.admit(keyOf{a.UserID, string(a.Key)}, entry{mark: t, digest: a.Digest, since: f.now()})
	switch {
	case ours:
		return order.Admission{Advice: order.Ours, Layer: order.LayerRedis, Ticket: t}
	case held.running():
		return order.Admission{Advice: order.Running, Layer: order.LayerRedis, Digest: held.digest, Age: f.now().Sub(held.since), Ticket: t}
	default:
		return order.Admission{Advice: order.Seen, Layer: order.LayerRedis, Receipt: held.receipt, Ticket: t}
	}
}

// Peek implements [order.Filter].
func (f *Filter) Peek(_ context.Context, userID string, key order.Key) []order.Glimpse {
	f.mu.Lock()
	defer f.mu.Unlock()
	var seen []order.Glimpse
	for a := range f.flights {
		if a.UserID == userID && a.Key == key {
			seen = append(seen, order.Glimpse{Layer: order.LayerProcess, Running: true, Digest: a.Digest})
		}
	}
	if f.down {
		return append(seen, order.Glimpse{Layer: order.LayerRedis, Unavailable: true})
	}
	held, ok := f.shared.get(keyOf{userID, string(key)})
	switch {
	case !ok:
		return seen
	case held.running():
		return append(seen, order.Glimpse{Layer: order.LayerRedis, Running: true, Age: f.now().Sub(held.since), Digest: held.digest})
	default:
		return append(seen, order.Glimpse{Layer: order.LayerRedis, Digest: held.receipt.Digest, Receipt: held.receipt})
	}
}

// SetDown takes the shared tier away from this process, or gives it back.
func (f *Filter) SetDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

// Flush empties the shared tier, as FLUSHALL does.
func (f *Filter) Flush() { f.shared.flush() }

// PutMark plants a mark of somebody who is not there, as a dead gateway leaves it.
func (f *Filter) PutMark(userID string, key order.Key, d order.Digest, since time.Time) {
	f.shared.put(keyOf{userID, string(key)}, entry{mark: &ticket{}, digest: d, since: since})
}

// PutReceipt plants a receipt.
func (f *Filter) PutReceipt(userID string, key order.Key, r order.Receipt) {
	f.shared.put(keyOf{userID, string(key)}, entry{receipt: r})
}

// Flights returns how many attempts this process has not finished.
func (f *Filter) Flights() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.flights)
}
