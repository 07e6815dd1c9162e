package ordertest

import (
	"context"
	"sync"
	"time"

	"github.com/oncegate/oncegate/order"
)

// entries is the shared tier.
type entries struct {
	mu    sync.Mutex
	byKey map[keyOf]entry
}

// entry is a mark while mark is set, otherwise a receipt.
type entry struct {
	mark    *ticket // its identity is the owner token
	digest  order.Digest
	since   time.Time
	receipt order.Receipt
}

func (e entry) running() bool { return e.mark != nil }

// admit is SET NX GET.
func (e *entries) admit(k keyOf, mine entry) (held entry, ours bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if held, ok := e.byKey[k]; ok {
		return held, false
	}
	e.byKey[k] = mine
	return entry{}, true
}

func (e *entries) get(k keyOf) (entry, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	held, ok := e.byKey[k]
	return held, ok
}

func (e *entries) put(k keyOf, v entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byKey[k] = v
}

// release is compare-and-delete.
func (e *entries) release(k keyOf, owner *ticket) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byKey[k].mark == owner {
		delete(e.byKey, k)
	}
}

func (e *entries) flush() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.byKey)
}

type ticket struct {
	filter  *Filter
	attempt order.Attempt
	flight  *flight
	once    sync.Once
}

// Finish implements [order.Ticket]. It panics when it is called twice: that is a
// fault of the caller which a test must see.
func (t *ticket) Finish(_ context.Context, end order.End) {
	first := false
	t.once.Do(func() { first = true })
	if !first {
		panic("ordertest: a ticket was finished twice")
	}
	t.land(end)
	t.flight.answer, t.flight.err = end.Answer, end.Err
	close(t.flight.done)
}

// land tells the shared tier and ends the flight, in one step for this process: who
// comes between the two would meet the mark of an attempt that is over.
func (t *ticket) land(end order.End) {
	t.filter.mu.Lock()
	defer t.filter.mu.Unlock()
	if !t.filter.down {
		k := keyOf{t.attempt.UserID, string(t.attempt.Key)}
		switch {
		case end.Mark == order.MarkReceipt && end.Receipt.State != order.Processing:
			t.filter.shared.put(k, entry{receipt: end.Receipt})
		case end.Mark != order.MarkLeft: // also what is not an answer yet must not be kept as one
			t.filter.shared.release(k, t)
		}
	}
	delete(t.filter.flights, t.attempt)
}

type flight struct {
	done   chan struct{}
	answer order.Answer // set before done is closed
	err    error
}

// Wait implements [order.Flight].
func (f *flight) Wait(ctx context.Context) (order.Answer, error) {
	select {
	case <-f.done:
		return f.answer, f.err
	case <-ctx.Done():
	}
	select {
	case <-f.done:
		return f.answer, f.err
	default:
		return order.Answer{}, ctx.Err()
	}
}
