package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/oncegate/oncegate/internal/crashpoint"
	"github.com/oncegate/oncegate/order"
)

// outcome is one command's share of a committed (or needless) transaction.
type outcome struct {
	decision  order.Decision
	noAccount bool
	writes    bool // it depends on the COMMIT
}

func (o outcome) deliver(s *Store, p *pending) {
	if o.noAccount {
		p.fail(order.ErrUnknownUser)
		return
	}
	if p.unknown { // still: the decision came from another server than the one that did not answer
		s.metrics.resolved[resolvedNot].Inc()
	}
	p.deliver(o.decision, nil)
}

// attempt decides a group in one transaction:
//
//  1. lock the users' rows, in key order, before anything else
//  2. read the idempotency records
//  3. read the orders that have the business numbers
//  4. lock the stock rows, in SKU order; then decide in memory, in order of arrival
//  5. write
//  6. commit
//
// It is also what resolves an unknown commit: step 1 waits until the session
// that did not answer is over, steps 2 and 3 then see what it left.
//
// A panic is the fault of a single command, as far as anybody knows, and not an
// outcome of its neighbours: it fails the attempt, and they are decided apart.
//
// Passing over users whose rows somebody has, it makes of them users without an
// account.
func (w *worker) attempt(ctx context.Context, group []*pending, passing bool) (outcomes []outcome, failed *failure) {
	clock := w.s.startSteps(ctx)
	t, err := w.s.begin(ctx, &w.q)
	if err != nil {
		return nil, &failure{fault: w.s.d.classify(err), err: fmt.Errorf("begin: %w", err)}
	}
	defer t.end()
	clock.done(stepBegin)
	fail := func(doing string, err error) ([]outcome, *failure) {
		f := w.s.d.classify(err)
		t.broken = t.broken || f == faultUnavailable
		if f == faultDuplicate || f == faultReference {
			for _, p := range group {
				p.suspect = true
			}
		}
		return nil, &failure{fault: f, err: fmt.Errorf("%s: %w", doing, err)}
	}
	v := newView()
	committing := false
	defer func() {
		if p := recover(); p != nil {
			w.s.logPanic(p)
			t.broken = true
			if committing {
				w.inDoubt(v, group, outcomes)
			}
			outcomes, failed = nil, &failure{fault: faultPermanent, err: errPanic, committing: committing}
		}
	}()
	crashpoint.Hit(crashpoint.BeforeLock)
	lock := w.s.d.forUpdate
	if passing {
		lock = w.s.d.skipLocked
	}
	if err := t.lockUsers(v, group, lock); err != nil {
		outcomes, failed = fail("lock users", err)
		failed.users = failed.fault == faultLockWait
		return outcomes, failed
	}
	clock.done(stepLockUsers)
	w.s.seen(ctx, v.server)
	crashpoint.Hit(crashpoint.BeforeRecords)
	if err := t.readRecords(v, group, w.s.o.Renderer); err != nil {
		return fail("read records", err)
	}
	clock.done(stepReadRecords)
	w.resolve(v, group)
	fresh := v.fresh(group)
	crashpoint.Hit(crashpoint.BeforeNumbers)
	if err := t.readNumbers(v, fresh); err != nil {
		return fail("read business numbers", err)
	}
	clock.done(stepReadNumbers)
	crashpoint.Hit(crashpoint.BeforeStock)
	if err := t.lockStock(v, fresh); err != nil {
		return fail("lock stock", err)
	}
	clock.done(stepLockStock)
	var writes *writes
	outcomes, writes = w.plan(v, group)
	clock.done(stepPlan)
	w.s.metrics.batch.Observe(float64(len(group)))
	if writes.empty() {
		return outcomes, nil
	}
	w.s.metrics.rows.Observe(float64(len(writes.orders)))
	if err := t.write(writes); err != nil {
		return fail("write", err)
	}
	clock.done(stepWrite)
	crashpoint.Hit(crashpoint.BeforeCommit)
	w.answerEarly(group, outcomes)
	committing = true
	if err := t.commit(); err != nil {
		w.inDoubt(v, group, outcomes)
		return nil, &failure{fault: w.s.faultOf(err), err: err, committing: true}
	}
	clock.done(stepCommit)
	crashpoint.Hit(crashpoint.AfterCommit)
	return outcomes, nil
}

// inDoubt notes a COMMIT of which nothing is known. One on another server leaves
// open what the first did: no single server can tell of both.
func (w *worker) inDoubt(v *view, group []*pending, outcomes []outcome) {
	w.s.metrics.unknown.Inc()
	for i, p := range group {
		if !outcomes[i].writes {
			continue
		}
		if p.unknown && p.unknownAt != v.server {
			p.unknownAt = 0
		} else {
			p.unknown, p.unknownAt = true, v.server
		}
		p.refusal, p.refusedAt = outcomes[i].decision.Rejection, v.now
	}
}

// resolve drops the doubt about an earlier COMMIT where this attempt has proof:
// on the server that did not answer, the user's lock was given, so that session
// is over; what it left is visible or does not exist.
func (w *worker) resolve(v *view, group []*pending) {
	for _, p := range group {
		if !p.unknown {
			continue
		}
		rec, recorded := v.records[p.pair()]
		recorded = recorded && rec.receipt.State != order.Processing
		_, made := v.byID[p.ids[0]]
		_, given := v.balances[p.cmd.UserID]
		switch {
		case recorded || made:
			p.unknown, p.found = false, true
			w.s.metrics.resolved[resolvedCommitted].Inc()
		case given && v.server != 0 && v.server == p.unknownAt:
			p.unknown = false
			w.s.metrics.resolved[resolvedAbsent].Inc()
		}
	}
}

func (p *pending) pair() pair { return pair{p.cmd.UserID, string(p.cmd.Key)} }

// usersOf lists the users of a group once each, in key order: the order in
// which every transaction locks them.
func usersOf(group []*pending) []string {
	users := make([]string, 0, len(group))
	for _, p := range group {
		users = append(users, p.cmd.UserID)
	}
	slices.Sort(users)
	return slices.Compact(users)
}
