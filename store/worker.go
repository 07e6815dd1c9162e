package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/oncegate/oncegate/order"
)

// worker decides groups of commands, one transaction at a time.
type worker struct {
	s     *Store
	stop  context.Context //nolint:containedctx // the life of the worker, not of a request
	queue chan *pending
	held  *pending // taken from the queue, but too large for the group before
	q     query    // reused between transactions
}

// Retries of a group. With an unknown commit there is no limit but the time:
// the next attempt is what resolves it.
const (
	maxAttempts = 5
	firstDelay  = 5 * time.Millisecond
	lastDelay   = 200 * time.Millisecond
)

func (w *worker) run() {
	for {
		first := w.waiting()
		if first == nil {
			var ok bool
			if first, ok = <-w.queue; !ok {
				return
			}
			w.s.metrics.waiting.Dec()
		}
		w.decide(w.gather(first))
	}
}

// waiting takes what has waited longest, nil when nothing waits.
func (w *worker) waiting() *pending {
	if p := w.held; p != nil {
		w.held = nil
		return p
	}
	select {
	case p, ok := <-w.queue:
		if ok {
			w.s.metrics.waiting.Dec()
		}
		return p // nil when the queue is closed
	default:
		return nil
	}
}

// gather takes what is waiting, without ever waiting for more: an idle ledger
// decides one command as fast as one transaction, a busy one spreads its cost.
func (w *worker) gather(first *pending) []*pending {
	group := make([]*pending, 0, w.s.o.MaxBatch)
	rows := 0
	take := func(p *pending) {
		if p.start() {
			group = append(group, p)
			rows += len(p.cmd.Lines)
		}
	}
	w.s.metrics.waited.Observe(w.s.o.Now().Sub(first.queued).Seconds())
	take(first)
	for len(group) < w.s.o.MaxBatch {
		select {
		case p, ok := <-w.queue:
			if !ok {
				return group
			}
			w.s.metrics.waiting.Dec()
			if rows > 0 && rows+len(p.cmd.Lines) > w.s.o.MaxRows {
				w.held = p
				return group
			}
			take(p)
		default:
			return group
		}
	}
	return group
}

// attempted is a group and how often it was tried.
type attempted struct {
	group  []*pending
	times  int
	locked bool // somebody has a row that it needs, and nobody was let go first since
}

// decide tries a group until each of its commands has an answer. What cannot be
// told apart is retried whole; what one command caused is retried one by one,
// round by round, so that it costs its neighbours no more than one turn. And
// those who come meanwhile: before a row that somebody has is waited for once
// more, what has gathered is decided.
func (w *worker) decide(group []*pending) {
	var a attempted
	todo := []attempted{{group: group}}
	defer func() {
		if p := recover(); p != nil {
			w.s.logPanic(p)
			for _, a := range append(todo, a) {
				for _, c := range a.group {
					c.unknown = true
					c.fail(order.ErrInternal)
				}
			}
		}
	}()
	for len(todo) > 0 {
		a, todo = w.next(todo)
		if len(a.group) == 0 {
			continue
		}
		f := w.try(a.group)
		if f == nil {
			continue
		}
		a.times++
		switch {
		case len(a.group) > 1 && f.fault != faultConflict && f.fault != faultUnavailable:
			for _, p := range a.group {
				todo = append(todo, attempted{group: []*pending{p}})
			}
		case f.fault == faultPermanent:
			w.giveUp(a.group, fmt.Errorf("%w: %w", order.ErrInternal, f.err))
		case w.again(a, f):
			a.locked = f.fault == faultLockWait
			todo = append(todo, a)
		default:
			w.giveUp(a.group, fmt.Errorf("%w: %w", order.ErrUnavailable, f.err))
		}
	}
}

// next takes the first group of the list, or what has gathered meanwhile when that
// one would wait for a row.
func (w *worker) next(todo []attempted) (attempted, []attempted) {
	a := &todo[0]
	if a.locked && len(todo) <= w.s.o.MaxBatch {
		if p := w.waiting(); p != nil {
			a.locked = false
			return attempted{group: w.gather(p)}, todo
		}
	}
	return *a, todo[1:]
}

func (s *Store) logPanic(p any) {
	s.o.Logger.Error("panic in the ledger", "panic", p, "stack", string(debug.Stack()))
}

// again waits a little, with jitter, and reports whether another attempt has a
// point.
func (w *worker) again(a attempted, f *failure) bool {
	unresolved := false
	for _, p := range a.group {
		unresolved = unresolved || p.unknown
	}
	if a.times >= maxAttempts && !unresolved {
		return false
	}
	if flawPlainReread && f.committing {
		return false
	}
	delay := min(lastDelay, firstDelay<<min(a.times, 10))
	delay = delay/2 + rand.N(delay) //nolint:gosec // G404: jitter
	if w.s.o.Now().Add(delay).After(latest(a.group)) {
		return false
	}
	return pause(w.stop, delay)
}

func latest(group []*pending) time.Time {
	var t time.Time
	for _, p := range group {
		if p.deadline.After(t) {
			t = p.deadline
		}
	}
	return t
}

func (w *worker) giveUp(group []*pending, err error) {
	for _, p := range group {
		if flawPlainReread && p.unknown {
			w.plainReread(p)
		}
		if p.unknown {
			w.s.metrics.resolved[resolvedNot].Inc()
		}
		p.fail(err)
	}
}

// try makes one attempt. It returns nil when every command of the group has
// its answer.
func (w *worker) try(group []*pending) *failure {
	ctx, cancel := context.WithDeadline(w.stop, latest(group))
	defer cancel()
	started := w.s.o.Now()
	traced, ended := w.s.traceGroup(ctx, group)
	outcomes, f := w.attempt(traced, group)
	ended(f)
	w.s.metrics.took.Observe(w.s.o.Now().Sub(started).Seconds())
	if f != nil {
		w.s.metrics.retries[f.fault].Inc()
		return f
	}
	var unprovisioned []*pending
	for i, p := range group {
		if outcomes[i].noAccount && w.s.o.ProvisionBalance != nil && !p.provisioned {
			p.provisioned = true
			unprovisioned = append(unprovisioned, p)
			continue
		}
		outcomes[i].deliver(w.s, p)
	}
	if len(unprovisioned) == 0 {
		return nil
	}
	if err := w.provision(ctx, unprovisioned); err != nil {
		w.giveUp(unprovisioned, err)
		return nil
	}
	w.decide(unprovisioned)
	return nil
}
