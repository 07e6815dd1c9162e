package cache

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/oncegate/oncegate/order"
)

// guard is the shared tier: one Redis string per user and key.
type guard struct {
	o       *Options
	codec   *codec
	breaker *gobreaker.CircuitBreaker[string]
	metrics *metrics
}

// release deletes the mark of its owner and nobody else's. It is a plain
// script, so that it also runs on a Redis that is out of memory.
var release = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

// futureTolerance is how far the clocks of two gateways may differ.
const futureTolerance = time.Second

func newGuard(o *Options, m *metrics) *guard {
	g := &guard{o: o, codec: newCodec(o.MACKey), metrics: m}
	g.breaker = gobreaker.NewCircuitBreaker[string](gobreaker.Settings{
		Name:        "redis",
		MaxRequests: 1, // one probe; everybody else goes on to the ledger
		Timeout:     o.BreakerOpenFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= o.BreakerFailures },
		// That nobody has the key, or that it holds another type, is an answer.
		IsSuccessful: func(err error) bool {
			return err == nil || errors.Is(err, redis.Nil) || reasonOf(err) == reasonWrongType
		},
		// A client that went away says nothing about Redis.
		IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			m.breaker(to)
			o.Logger.Warn("the Redis breaker changed; while it is open the database is asked at once", "from", from.String(), "to", to.String())
		},
	})
	m.breaker(gobreaker.StateClosed)
	return g
}

// verdict is what the guard says of an attempt.
type verdict struct {
	advice  order.Advice
	digest  order.Digest
	age     time.Duration
	receipt order.Receipt
	mark    []byte // what this attempt wrote, or may have written
}

func bypassed(mark []byte) verdict { return verdict{advice: order.Bypassed, mark: mark} }

// admit marks the key, or tells who has it.
func (g *guard) admit(ctx context.Context, a order.Attempt, name string) verdict {
	t := g.o.Tuning()
	now := g.o.Now()
	mark := g.codec.mark(a, now)
	held, err := g.do(ctx, t.OpTimeout, g.metrics.set, func(ctx context.Context) (string, error) {
		return g.o.Client.SetArgs(ctx, name, mark, redis.SetArgs{Mode: "NX", Get: true, TTL: t.InProgressTTL}).Result()
	})
	switch {
	case errors.Is(err, redis.Nil):
		return verdict{advice: order.Ours, mark: mark}
	case err != nil:
		g.metrics.bypass(reasonOf(err))
		return bypassed(mark)
	case held == string(mark):
		return verdict{advice: order.Ours, mark: mark} // the reply to a first send was lost
	}
	e, err := g.codec.decode([]byte(held), a.UserID, a.Key)
	if err != nil {
		g.metrics.bypass(reasonOf(err))
		return bypassed(nil)
	}
	switch e.kind {
	case kindMark:
		age := now.Sub(e.at)
		if age < -futureTolerance {
			g.metrics.bypass(reasonFuture)
			return bypassed(nil)
		}
		return verdict{advice: order.Running, digest: e.digest, age: max(time.Nanosecond, age)}
	case kindReceipt:
		return verdict{advice: order.Seen, digest: e.digest, receipt: e.receipt}
	default:
		g.metrics.bypass(reasonLarge)
		return bypassed(nil)
	}
}

// settle writes a receipt over whatever is there: committed truth may.
func (g *guard) settle(ctx context.Context, user string, key order.Key, name string, r *order.Receipt, mark []byte) {
	t := g.o.Tuning()
	value := g.codec.receipt(user, key, r, g.o.MaxBody)
	_, err := g.do(ctx, t.OpTimeout, g.metrics.set, func(ctx context.Context) (string, error) {
		return g.o.Client.Set(ctx, name, value, t.ReceiptTTL).Result()
	})
	if err == nil {
		return
	}
	reason := reasonOf(err)
	g.metrics.unsettled(reason)
	if reason == reasonMemory {
		g.release(ctx, name, mark) // a full Redis still deletes
	}
}

// release takes the mark away if it is still this attempt's.
func (g *guard) release(ctx context.Context, name string, mark []byte) {
	if mark == nil {
		return
	}
	_, err := g.do(ctx, g.o.Tuning().OpTimeout, g.metrics.release, func(ctx context.Context) (string, error) {
		return "", release.Run(ctx, g.o.Client, []string{name}, mark).Err()
	})
	if err != nil {
		g.metrics.unsettled(reasonOf(err))
	}
}

// peek reads an entry and its remaining life.
func (g *guard) peek(ctx context.Context, user string, key order.Key, name string) (order.Glimpse, bool) {
	var ttl time.Duration
	held, err := g.do(ctx, g.o.Tuning().OpTimeout, g.metrics.get, func(ctx context.Context) (string, error) {
		pipe := g.o.Client.Pipeline()
		get, pttl := pipe.Get(ctx, name), pipe.PTTL(ctx, name)
		if _, err := pipe.Exec(ctx); err != nil {
			return "", err
		}
		ttl = pttl.Val()
		return get.Val(), nil
	})
	if err != nil {
		return order.Glimpse{}, false
	}
	e, err := g.codec.decode([]byte(held), user, key)
	if err != nil || e.kind == kindPointer {
		return order.Glimpse{}, false
	}
	return order.Glimpse{
		Layer: order.LayerRedis, Running: e.kind == kindMark, Digest: e.digest, Receipt: e.receipt,
		Age: max(time.Nanosecond, g.o.Now().Sub(e.at)), TTL: max(0, ttl),
	}, true
}

// do runs one operation behind the breaker and under its time-out.
func (g *guard) do(ctx context.Context, timeout time.Duration, m *commandMetrics, op func(context.Context) (string, error)) (string, error) {
	return g.breaker.Execute(func() (string, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		started := g.o.Now()
		v, err := op(ctx)
		m.observe(g.o.Now().Sub(started), err)
		return v, err
	})
}

// Why the guard could not help.
const (
	reasonBreaker    = "breaker_open"
	reasonTimeout    = "timeout"
	reasonCancelled  = "cancelled"
	reasonMemory     = "out_of_memory"
	reasonReadOnly   = "read_only"
	reasonWrongType  = "wrong_type"
	reasonUnreadable = "unreadable"
	reasonForged     = "bad_mac"
	reasonVersion    = "other_version"
	reasonFuture     = "from_the_future"
	reasonLarge      = "large_answer"
	reasonError      = "error"
)

var reasons = []string{
	reasonBreaker, reasonTimeout, reasonCancelled, reasonMemory, reasonReadOnly, reasonWrongType,
	reasonUnreadable, reasonForged, reasonVersion, reasonFuture, reasonLarge, reasonError,
}

// reasonOf sorts an error, once, for the metrics.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		return reasonBreaker
	case errors.Is(err, errMAC):
		return reasonForged
	case errors.Is(err, errVersion):
		return reasonVersion
	case errors.Is(err, errUnreadable):
		return reasonUnreadable
	case errors.Is(err, context.Canceled):
		return reasonCancelled
	case isTimeout(err):
		return reasonTimeout
	case strings.HasPrefix(err.Error(), "OOM"):
		return reasonMemory
	case strings.HasPrefix(err.Error(), "READONLY"):
		return reasonReadOnly
	case strings.HasPrefix(err.Error(), "WRONGTYPE"):
		return reasonWrongType
	default:
		return reasonError
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &t) && t.Timeout())
}
