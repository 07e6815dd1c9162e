//go:build unix

package bench

import (
	"context"
	"fmt"
	"strconv"

	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/measure"
)

// The requests that are repeated: a few that the process always remembers, and
// so many others, one after another, that it has forgotten each when it comes
// round again. Few receipts fit into the process, so that this takes few orders.
const (
	hotKeys  = 64
	coldKeys = 8192
	roomFor  = 1024 // receipts in the process
)

// crowded is a gateway of those proportions.
func crowded() settings { return settings{"cache.local_entries": strconv.Itoa(roomFor)} }

// otherBody is never what was asked for with a key before.
const otherBody = `{"sku":"potsticker","quantity":3,"amount":"59.70"}`

// kind is an outcome together with the requests that have it.
type kind struct {
	name  string
	want  measure.Outcome
	layer string                                     // that gives a replay
	next  func(i, workers int) (next func() request) // of the i-th of so many workers
}

func (s *stage) created() kind {
	return kind{name: "created", want: measure.Created, next: func(int, int) func() request {
		next := fresh(s.users)
		return func() request {
			who, key := next()
			return request{who, key, orderBody}
		}
	}}
}

func (s *stage) replayedFromRedis() kind {
	return kind{name: "replayed from Redis", want: measure.Replayed, layer: layerRedis, next: func(i, workers int) func() request {
		at := i
		return func() request {
			r := s.cold(at)
			if at += workers; at >= coldKeys {
				at = i
			}
			return r
		}
	}}
}

func (s *stage) replayedInProcess() kind {
	return kind{name: "replayed in process", want: measure.Replayed, layer: layerProcess, next: s.hotOnes(orderBody)}
}

// reused are refused: the key belongs to another content.
func (s *stage) reused() kind {
	return kind{name: "refused: key reused", want: measure.Reused, next: s.hotOnes(otherBody)}
}

func (s *stage) hotOnes(body string) func(i, workers int) func() request {
	return func(i, _ int) func() request {
		next := known(s.users[:hotKeys], i)
		return func() request {
			who, key := next()
			return request{who, key, body}
		}
	}
}

func (s *stage) cold(i int) request {
	return request{s.users[i%len(s.users)], "cold-" + strconv.Itoa(i), orderBody}
}

// primeKinds makes the orders that the kinds repeat, the hot ones last.
func (s *stage) primeKinds(ctx context.Context, d *deployment) error {
	p := newPoster(d.addr)
	err := everyone(ctx, atOnce, func(ctx context.Context, i int) error {
		at := i
		w := p.worker(ctx, func() (drive.Identity, string) { r := s.cold(at); return r.who, r.key }, made)
		defer w.close()
		for ; at < coldKeys; at += atOnce {
			if err := w.step(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("make the orders that are to be repeated: %w", err)
	}
	return d.prime(ctx, s.users[:hotKeys])
}

// ceiling is how many of a kind a gateway gives per second to a closed loop,
// and notes what is wrong with that.
func (s *stage) ceiling(ctx context.Context, d *deployment, k *kind, sheet *Sheet) (perSecond float64, err error) {
	workers := s.c.most()
	l := load{
		workers: workers, warm: s.c.Window / 4, window: s.c.Window,
		make: func(i int) (worker, error) { return k.worker(ctx, d.addr, i, workers), nil },
	}
	before, err := d.layers(ctx)
	if err != nil {
		return 0, err
	}
	sample, err := l.run(ctx)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", k.name, err)
	}
	after, err := d.layers(ctx)
	if err != nil {
		return 0, err
	}
	k.remark(sheet, &sample, before, after)
	s.say("  ceiling, %s: %s", k.name, rate.format(sample.PerSecond))
	return sample.PerSecond, nil
}

// remark notes what a closed loop's figure does not tell: answers that were wrong,
// and such as came from another layer.
func (k *kind) remark(sheet *Sheet, sample *Sample, before, after Layers) {
	if sample.Wrong > 0 {
		sheet.note("%s, closed loop: %d of %d answers were wrong, such as: %v", k.name, sample.Wrong, sample.Right+sample.Wrong, sample.fault)
	}
	if share, ok := after.share(before, k.layer); k.layer != "" && ok && share < mostly {
		sheet.note("%s, closed loop: only %.0f %% came from there", k.name, 100*share)
	}
}

// worker asks for requests of the kind over a connection of its own.
func (k *kind) worker(ctx context.Context, addr string, i, workers int) worker {
	c := &connection{addr: addr}
	unhook := context.AfterFunc(ctx, c.interrupt)
	next := k.next(i, workers)
	return worker{
		step: func(ctx context.Context) error {
			r := next()
			if err := c.post(ctx, &r); err != nil {
				return err
			}
			if got := c.answer.outcome(); got != k.want {
				return fmt.Errorf("%v in place of %v: status %d: %.300s", got, k.want, c.answer.status, c.answer.body)
			}
			return nil
		},
		close: func() { unhook(); c.close() },
	}
}

// stream is the kind within an open loop.
func (k *kind) stream(rate float64) *stream {
	return &stream{rate: rate, next: k.next(0, 1)}
}
