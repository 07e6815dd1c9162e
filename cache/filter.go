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
	names   *namer
	process *process // nil when the process tier is off
	guard   *guard

	misses chan miss // to be judged by Watch
	past   past
	silent time.Time // until then Redis is not asked about itself; Watch's alone
}

var _ order.Filter = (*Filter)(nil)

// New wires a filter. It does not connect: Redis may be away. It has nothing to
// close: what it has running ends with its client.
func New(o Options) (*Filter, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	f := &Filter{o: o, names: newNamer(o.Prefix, o.MACKey), misses: make(chan miss, maxMisses)}
	if f.guard, err = newGuard(&f.o, m); err != nil {
		return nil, err
	}
	if err := register(o.Registerer, newPoolMetrics(o.Client)); err != nil {
		return nil, err
	}
	if !o.DisableProcessTier {
		f.process = newProcess(o.LocalEntries, o.LocalBytes, func() time.Duration { return o.Tuning().LocalTTL }, o.Now)
		if err := m.watch(o.Registerer, f.process); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Admit implements [order.Filter].
func (f *Filter) Admit(ctx context.Context, a order.Attempt) order.Admission {
	if f.o.Tracer != nil {
		return f.admitTraced(ctx, a)
	}
	return f.admit(ctx, &a)
}

func (f *Filter) admit(ctx context.Context, a *order.Attempt) order.Admission {
	if f.process == nil {
		return f.ask(ctx, a, nil)
	}
	adm, flight := f.process.admit(a)
	if flight == nil {
		return adm
	}
	return f.ask(ctx, a, flight)
}

// ask asks the guard. A panic must not leave a flight behind that nobody ends.
func (f *Filter) ask(ctx context.Context, a *order.Attempt, fl *flight) order.Admission {
	t := &ticket{filter: f, user: a.UserID, key: a.Key, name: f.names.name(a.UserID, a.Key), flight: fl}
	asked := false
	defer func() {
		if !asked {
			t.end(&order.End{Err: order.Undecided(order.OutcomeUnknown, order.ErrInternal)})
		}
	}()
	v := f.guard.admit(ctx, a, t.name)
	asked = true
	t.mark = v.mark
	return order.Admission{Advice: v.advice, Layer: order.LayerRedis, Digest: v.digest, Age: v.age, Receipt: v.receipt, Ticket: t}
}

// Peek implements [order.Filter].
func (f *Filter) Peek(ctx context.Context, userID string, key order.Key) []order.Glimpse {
	var known []order.Glimpse
	if f.process != nil {
		if g, ok := f.process.peek(slot{userID, key}); ok {
			known = append(known, g)
		}
	}
	if g, ok := f.guard.peek(ctx, userID, key, f.names.name(userID, key)); ok {
		known = append(known, g)
	}
	return known
}

// Health reports why Redis is of no use at the moment, or nil. Without it the
// gateway is slower, not wrong: a degradation, never a failure. It is bounded as
// every operation is.
func (f *Filter) Health(ctx context.Context) error {
	if err := f.guard.health(ctx); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}
