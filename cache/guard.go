package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncegate/oncegate/internal/crashpoint"
	"github.com/oncegate/oncegate/order"
)

// guard is the shared tier: one Redis string per user and key.
type guard struct {
	o       *Options
	pipe    pipe
	codec   *codec
	breaker *breaker
	metrics *metrics
	notices *notices
}

// The entry that health writes; nobody reads it. Its name is none of a [namer].
const (
	probeSuffix = ":probe"
	probeTTL    = time.Second
)

// futureTolerance is how far the clocks of two gateways may differ.
const futureTolerance = time.Second

func newGuard(o *Options, m *metrics) (*guard, error) {
	p, err := newPipe(o.Client, o.Pipelining)
	if err != nil {
		return nil, err
	}
	g := &guard{
		o: o, pipe: p, codec: newCodec(o.MACKey), metrics: m,
		breaker: newBreaker(o.Tuning, m, o.Logger),
		notices: newNotices(o.Logger, o.Now),
	}
	g.breaker.moved = o.BreakerMoved
	return g, nil
}

// verdict is what the guard says of an attempt.
type verdict struct {
	advice  order.Advice
	digest  order.Digest
	age     time.Duration
	receipt order.Receipt
	mark    []byte // what this attempt wrote, or may have written; nil when neither
}

// admit marks the key, or tells who has it.
func (g *guard) admit(ctx context.Context, a *order.Attempt, name string) verdict {
	if ctx.Err() != nil {
		return g.bypass(ctx, errCallerLeft, nil)
	}
	t := g.o.Tuning()
	now := g.o.Now()
	mark := g.codec.mark(a, now)
	cmd := command(ctx, "set", name, mark, "nx", "get", "px", t.InProgressTTL.Milliseconds())
	crashpoint.Hit(crashpoint.BeforeMark)
	err := g.do(ctx, &t, g.metrics.admit, func() error { return g.pipe.send(ctx, t.OpTimeout, cmd) })
	crashpoint.Hit(crashpoint.AfterMark)
	switch {
	case isNil(err):
		return verdict{advice: order.Ours, mark: mark}
	case err != nil:
		if !mayHaveRun(err) {
			mark = nil
		}
		return g.bypass(ctx, err, mark)
	}
	held, _ := cmd.Bytes() // the error is the one above
	if bytes.Equal(held, mark) && !flawNoOwnerToken {
		return verdict{advice: order.Ours, mark: mark} // the reply to a first send was lost
	}
	e, age, err := g.read(held, a.UserID, a.Key, now)
	if err != nil {
		return g.bypass(ctx, err, nil)
	}
	switch e.kind {
	case kindMark:
		return verdict{advice: order.Running, digest: e.digest, age: age}
	case kindReceipt:
		return verdict{advice: order.Seen, receipt: e.receipt}
	default:
		g.metrics.bypassed[reasonLarge].Inc()
		return verdict{advice: order.Bypassed}
	}
}

// read decodes an entry. The age is a mark's, and above zero: zero would say
// that its holder is known to be alive.
func (g *guard) read(held []byte, user string, key order.Key, now time.Time) (entry, time.Duration, error) {
	e, err := g.codec.decode(held, user, key)
	if err != nil {
		return entry{}, 0, err
	}
	age := now.Sub(e.at)
	if e.kind == kindMark && age < -futureTolerance {
		return entry{}, 0, errFuture
	}
	return e, max(time.Nanosecond, age), nil
}

func (g *guard) bypass(ctx context.Context, err error, mark []byte) verdict {
	r := reasonOf(err)
	g.metrics.bypassed[r].Inc()
	g.notices.entry(ctx, r)
	return verdict{advice: order.Bypassed, mark: mark}
}

// settle writes a receipt over whatever is there: committed truth may. The
// mark is the attempt's own, if it may be there.
func (g *guard) settle(ctx context.Context, user string, key order.Key, name string, r *order.Receipt, mark []byte) {
	t := g.o.Tuning()
	value := g.codec.receipt(user, key, r, g.o.MaxBody)
	cmd := command(ctx, "set", name, value, "px", t.ReceiptTTL.Milliseconds())
	crashpoint.Hit(crashpoint.BeforeReceipt)
	err := g.do(ctx, &t, g.metrics.settle, func() error { return g.pipe.send(ctx, t.OpTimeout, cmd) })
	crashpoint.Hit(crashpoint.AfterReceipt)
	if err == nil {
		return
	}
	why := reasonOf(err)
	g.metrics.unsettled[why].Inc()
	if why == reasonMemory {
		g.release(ctx, name, mark) // a full Redis still deletes
	}
}

// release takes the mark away if it is still this attempt's. It must not be
// there before the mark itself, whose sender may have gone while it was queued.
func (g *guard) release(ctx context.Context, name string, mark []byte) {
	if mark == nil {
		return
	}
	t := g.o.Tuning()
	crashpoint.Hit(crashpoint.BeforeRelease)
	err := g.do(ctx, &t, g.metrics.release, func() error { return compareAndDelete(ctx, t.OpTimeout, inOrder(g.pipe), name, mark) })
	crashpoint.Hit(crashpoint.AfterRelease)
	if err != nil {
		g.metrics.unsettled[reasonOf(err)].Inc()
	}
}

// peek reads an entry and its remaining life. An entry that is not believed is
// as good as none; a Redis that could not be asked is not.
func (g *guard) peek(ctx context.Context, user string, key order.Key, name string) (order.Glimpse, bool) {
	var get *redis.StringCmd
	var ttl *redis.DurationCmd
	err := g.look(ctx, g.metrics.peek, func(ctx context.Context) error {
		_, err := g.o.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			get, ttl = p.Get(ctx, name), p.PTTL(ctx, name)
			return nil
		})
		return err
	})
	if !isAnswer(err) {
		return order.Glimpse{Layer: order.LayerRedis, Unavailable: true}, true
	}
	if err != nil {
		return order.Glimpse{}, false
	}
	held, _ := get.Bytes() // the error is the one above
	e, age, err := g.read(held, user, key, g.o.Now())
	if err != nil {
		return order.Glimpse{}, false
	}
	seen := order.Glimpse{Layer: order.LayerRedis, Digest: e.digest, TTL: max(0, ttl.Val())}
	switch e.kind {
	case kindMark:
		seen.Running, seen.Age = true, age
	case kindReceipt:
		seen.Receipt = e.receipt
	default:
		return order.Glimpse{}, false
	}
	return seen, true
}

// health reports why Redis is of no use at the moment, or nil. Where a breaker
// waits for an operation to try Redis with, and no request may come for long, it
// writes: a success must mean that requests can.
func (g *guard) health(ctx context.Context) error {
	halfOpen, refusal := g.breaker.standing()
	switch {
	case refusal != nil:
		return refusal
	case halfOpen:
		t := g.o.Tuning()
		cmd := command(ctx, "set", g.o.Prefix+probeSuffix, "1", "px", probeTTL.Milliseconds())
		return g.do(ctx, &t, g.metrics.ping, func() error { return g.pipe.send(ctx, t.OpTimeout, cmd) })
	}
	return g.bounded(ctx, g.metrics.ping, func(ctx context.Context) error { return g.o.Client.Ping(ctx).Err() })
}

// do runs one operation behind the breaker. The operation ends within its
// time-out by itself.
func (g *guard) do(ctx context.Context, t *Tuning, m *commandMetrics, op func() error) error {
	return g.breaker.run(t.BreakerOpenFor, func() error { return timed(ctx, t.OpTimeout, m, op) })
}

// look runs an operation that only reads. An open breaker spares Redis this one
// too, but its success must not close one: a Redis that is full or read-only
// still answers those who read.
func (g *guard) look(ctx context.Context, m *commandMetrics, op func(context.Context) error) error {
	if err := g.breaker.refusal(); err != nil {
		return err
	}
	return g.bounded(ctx, m, op)
}

// bounded runs an operation that heeds its context within the time-out, whatever the
// breaker says.
func (g *guard) bounded(ctx context.Context, m *commandMetrics, op func(context.Context) error) error {
	limit := g.o.Tuning().OpTimeout
	return timed(ctx, limit, m, func() error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return op(ctx)
	})
}

// timed measures an operation that ends within the limit.
func timed(ctx context.Context, limit time.Duration, m *commandMetrics, op func() error) error {
	started := time.Now()
	err := op()
	if !isAnswer(err) && left(ctx, started.Add(limit), err) {
		err = fmt.Errorf("%w: %w", errCallerLeft, err)
	}
	m.observe(time.Since(started), err)
	return err
}

// left reports whether an operation ended because its caller did not want to
// wait until the filter would have given up. A socket knows of a deadline a moment
// before the context does, so the deadlines are compared, not the time.
func left(caller context.Context, until time.Time, err error) bool {
	if !errors.Is(err, context.Canceled) && !isTimeout(err) {
		return false
	}
	theirs, bounded := caller.Deadline()
	return caller.Err() != nil || bounded && !theirs.After(until)
}
