package cache

import (
	"context"
	"fmt"
	"time"

	"github.com/oncegate/oncegate/order"
)

// Filter is the two tiers together. Safe for concurrent use.
type Filter struct {
	o       Options
	process *process // nil when the process tier is off
	guard   *guard
	metrics *metrics
}

var _ order.Filter = (*Filter)(nil)

// New wires a filter. It does not connect: Redis may be away.
func New(o Options) (*Filter, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	f := &Filter{o: o, metrics: newMetrics(o.Registerer)}
	f.guard = newGuard(&f.o, f.metrics)
	if !o.DisableProcessTier {
		f.process = newProcess(o.LocalEntries, o.LocalBytes)
		f.metrics.watch(o.Registerer, f.process)
	}
	return f, nil
}

// Admit implements [order.Filter].
func (f *Filter) Admit(ctx context.Context, a order.Attempt) order.Admission {
	t := &ticket{f: f, a: a}
	if f.process != nil {
		adm, flight := f.process.admit(a, f.o.Now())
		if flight == nil {
			return adm
		}
		t.flight = flight
	}
	t.name = redisKey(f.o.Prefix, a.UserID, a.Key)
	v := f.guard.admit(ctx, a, t.name)
	t.mark = v.mark
	return order.Admission{
		Advice: v.advice, Layer: order.LayerRedis, Digest: v.digest, Age: v.age, Receipt: v.receipt, Ticket: t,
	}
}

// Peek implements [order.Filter].
func (f *Filter) Peek(ctx context.Context, userID string, key order.Key) []order.Glimpse {
	var known []order.Glimpse
	if f.process != nil {
		if g, ok := f.process.peek(slot{userID, key}, f.o.Now()); ok {
			known = append(known, g)
		}
	}
	if g, ok := f.guard.peek(ctx, userID, key, redisKey(f.o.Prefix, userID, key)); ok {
		known = append(known, g)
	}
	return known
}

// ticket is an attempt that went past the process tier.
type ticket struct {
	f      *Filter
	a      order.Attempt
	name   string  // of the Redis entry
	mark   []byte  // what was, or may have been, written there; nil when somebody else has it
	flight *flight // nil when the process tier is off
}

// Finish implements [order.Ticket]. Those who joined are answered first: what
// they get is proven already. Redis is told before Finish returns, so that the
// client's next request finds the receipt on any gateway.
func (t *ticket) Finish(ctx context.Context, end order.End) {
	if t.flight != nil {
		var until time.Time
		if local := t.f.o.Tuning().LocalTTL; local > 0 {
			until = t.f.o.Now().Add(local)
		}
		t.f.process.land(t.a, t.flight, &end, until)
	}
	switch end.Mark {
	case order.MarkReceipt:
		t.f.guard.settle(ctx, t.a.UserID, t.a.Key, t.name, &end.Receipt, t.mark)
	case order.MarkReleased:
		t.f.guard.release(ctx, t.name, t.mark)
	case order.MarkLeft:
	}
}

// Health reports why Redis is of no use at the moment, or nil. Without it the
// gateway is slower, not wrong: a degradation, never a failure.
func (f *Filter) Health(ctx context.Context) error {
	_, err := f.guard.do(ctx, f.o.Tuning().OpTimeout, f.metrics.ping, func(ctx context.Context) (string, error) {
		return f.o.Client.Ping(ctx).Result()
	})
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}
