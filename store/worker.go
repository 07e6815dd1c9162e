package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync/atomic"
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
	// theirs is until when those who come go before whoever waits for a row: of the
	// time that a row is held, others have half.
	theirs time.Time
	// waited is how long the first of the last group had waited, and took how long the
	// last attempt took, in nanoseconds.
	waited, took atomic.Int64
	rows         atomic.Int64 // of the commands in the queue
}

// late tells whether a command would wait for half of its time or longer: as long as
// the first of the last group has, or for as many groups as are before it. Whoever is
// taken from a queue as old as callers are patient is decided for nobody, asks again,
// and so keeps the queue as it is. A single group is no queue. See "controlled delay"
// in Maurer, Fail at Scale (ACM Queue 13, 8).
func (w *worker) late(p *pending) bool {
	groups := max(len(w.queue)/w.s.o.MaxBatch, int(w.rows.Load())/w.s.o.MaxRows)
	waits := max(w.waited.Load(), w.took.Load()*int64(groups+1))
	return groups > 0 && time.Duration(waits) > p.deadline.Sub(p.queued)/2
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
			w.left(first)
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
			w.left(p)
		}
		return p // nil when the queue is closed
	default:
		return nil
	}
}

// join puts a command into the queue, unless that is full.
func (w *worker) join(p *pending) bool {
	rows := int64(len(p.cmd.Lines))
	w.rows.Add(rows)
	select {
	case w.queue <- p:
		w.s.metrics.waiting.Inc()
		return true
	default:
		w.rows.Add(-rows)
		return false
	}
}

// left is for every command that was taken from the queue.
func (w *worker) left(p *pending) {
	w.rows.Add(-int64(len(p.cmd.Lines)))
	w.s.metrics.waiting.Dec()
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
	waited := w.s.o.Now().Sub(first.queued)
	w.waited.Store(int64(waited))
	w.s.metrics.waited.Observe(waited.Seconds())
	take(first)
	for len(group) < w.s.o.MaxBatch {
		select {
		case p, ok := <-w.queue:
			if !ok {
				return group
			}
			w.left(p)
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

// decide tries a group until each of its commands has an answer. What cannot be
// told apart is retried whole; what one command caused is retried one by one,
// round by round, so that it costs its neighbours no more than one turn. Where
// somebody has the row of a user, the others are decided together before anything
// is waited for once more, and what has gathered meanwhile goes before it, too.
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
		tried := len(a.group)
		var f *failure
		if a.group, f = w.try(a); f == nil {
			todo = a.appendRest(todo, tried)
			continue
		}
		todo = w.after(a, f, todo)
	}
}

// after adds what is to be tried again of an attempt that failed, and answers the
// rest of it.
func (w *worker) after(a attempted, f *failure, todo []attempted) []attempted {
	a.times++
	if a.locked && f.fault == faultLockWait {
		w.theirs = w.s.o.Now().Add(w.s.o.LockWaitTimeout)
	}
	users := byUser(a.group)
	switch {
	case f.users && len(users) > 1 && !a.passing && w.s.d.passesOver:
		return slices.Insert(todo, 0, attempted{group: a.group, times: a.times, passing: true})
	case f.users && len(users) > 1:
		for _, theirs := range users {
			todo = append(todo, attempted{group: theirs})
		}
	case !f.users && len(a.group) > 1 && f.fault != faultConflict && f.fault != faultUnavailable:
		for _, p := range a.group {
			todo = append(todo, attempted{group: []*pending{p}})
		}
	case f.fault == faultPermanent:
		w.giveUp(a.group, fmt.Errorf("%w: %w", order.ErrInternal, f.err))
	case w.again(a, f):
		a.locked, a.let = f.fault == faultLockWait, false
		todo = append(todo, a)
	default:
		w.giveUp(a.group, fmt.Errorf("%w: %w", order.ErrUnavailable, f.err))
	}
	return todo
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

// try makes one attempt, and returns the commands that have no answer yet: all of
// them after a failure, otherwise those for whom an account was opened, or those who
// were passed over.
func (w *worker) try(a attempted) (rest []*pending, f *failure) {
	group := a.group
	ctx, cancel := context.WithDeadline(w.stop, latest(group))
	defer cancel()
	started := w.s.o.Now()
	traced, ended := w.s.traceGroup(ctx, group)
	outcomes, f := w.attempt(traced, group, a.passing)
	ended(f)
	took := w.s.o.Now().Sub(started)
	w.took.Store(int64(took))
	w.s.metrics.took.Observe(took.Seconds())
	if f != nil {
		w.s.metrics.retries[f.fault].Inc()
		return group, f
	}
	for i, p := range group {
		if outcomes[i].noAccount && (a.passing || w.s.o.ProvisionBalance != nil && !p.provisioned) {
			rest = append(rest, p) // what was passed over looks like what is not there
			continue
		}
		outcomes[i].deliver(w.s, p)
	}
	if len(rest) > 0 && !a.passing {
		f = w.provision(ctx, rest)
	}
	return rest, f
}

// provision opens accounts for users who have none, in a session of the worker's
// own: it does not wait for one of those that read.
func (w *worker) provision(ctx context.Context, group []*pending) *failure {
	t, err := w.s.begin(ctx, &w.q)
	if err == nil {
		err = w.s.carryOut(t, func(t *transaction) error { //nolint:contextcheck // the transaction has it
			return t.openAccounts(usersOf(group), *w.s.o.ProvisionBalance)
		})
	}
	if err != nil {
		f := &failure{fault: w.s.faultOf(err), err: fmt.Errorf("open accounts: %w", err)}
		w.s.metrics.retries[f.fault].Inc()
		return f
	}
	for _, p := range group {
		p.provisioned = true
	}
	return nil
}
