package cache

import (
	"context"

	"github.com/oncegate/oncegate/order"
)

// flight is an attempt that is being decided; those with the same content wait
// for it. Its shard's lock guards it until it has landed.
type flight struct {
	slot   slot
	digest order.Digest
	landed bool
	done   chan struct{} // made for the first who waits; closed when answer and err are set
	answer order.Answer
	err    error
}

// join returns what to wait for. The caller holds the shard's lock.
func (f *flight) join() order.Flight {
	if f.done == nil {
		f.done = make(chan struct{})
		if f.landed {
			close(f.done)
		}
	}
	return f
}

// land sets the end, once. The caller holds the shard's lock.
func (f *flight) land(end *order.End) (first bool) {
	if f.landed {
		return false
	}
	f.landed = true
	f.answer, f.err = end.Answer, end.Err
	if f.done != nil {
		close(f.done)
	}
	return true
}

// Wait implements [order.Flight].
func (f *flight) Wait(ctx context.Context) (order.Answer, error) {
	select {
	case <-f.done:
		return f.answer, f.err
	case <-ctx.Done():
	}
	select {
	case <-f.done: // both were ready: an answer is worth more
		return f.answer, f.err
	default:
		return order.Answer{}, ctx.Err()
	}
}
