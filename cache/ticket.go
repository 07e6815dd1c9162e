package cache

import (
	"context"
	"sync/atomic"

	"github.com/oncegate/oncegate/order"
)

// ticket is an attempt that went past the process tier.
type ticket struct {
	filter   *Filter
	user     string
	key      order.Key
	name     string  // of the Redis entry
	mark     []byte  // what was, or may have been, written there; nil when neither
	flight   *flight // nil when the process tier is off
	finished atomic.Bool
}

// Finish implements [order.Ticket]. It is to be called once; a second call does
// nothing.
//
// An answer that a committed transaction gave is proven: those who joined get
// it at once. Redis is told before Finish returns, so that the client's next
// request finds the receipt on any gateway, and until then the flight stays
// where the next attempt meets it. An attempt that came to nothing goes the
// other way round: its mark is gone before those who joined begin anew.
func (t *ticket) Finish(ctx context.Context, end order.End) {
	if t.finished.Swap(true) {
		return
	}
	ctx, ended := t.filter.startFinish(context.WithoutCancel(ctx), end.Mark)
	defer ended()
	defer func() { t.end(&end) }() // whatever panics below
	switch {
	case end.Mark == order.MarkReceipt && final(&end.Receipt):
		t.land(&end)
		t.filter.guard.settle(ctx, t.user, t.key, t.name, &end.Receipt, t.mark)
	case end.Mark != order.MarkLeft:
		t.filter.guard.release(ctx, t.name, t.mark)
	}
}

// land answers those who joined.
func (t *ticket) land(end *order.End) {
	if t.flight != nil {
		t.filter.process.land(t.flight, end)
	}
}

// end answers them, if they are not yet, and makes way for the next attempt.
func (t *ticket) end(end *order.End) {
	if t.flight != nil {
		t.filter.process.end(t.flight, end)
	}
}
