package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oncegate/oncegate/order"
)

// DeferredOptions bound the work on deferred requests.
type DeferredOptions struct {
	// Lease is how long a worker has for one request before another may take
	// it over. Default 30 s; it must be longer than a decision may take.
	Lease time.Duration
	// Poll is how often an idle worker looks for work. Default 200 ms.
	Poll time.Duration
	// MaxAttempts is how often a request is tried that the database refuses for
	// good, or that this program cannot read, before it is answered as failed.
	// Default 5.
	MaxAttempts int
}

// RunDeferred carries out deferred requests until ctx ends, one at a time; run
// it on several gateways, or several times. A request of a worker that died is
// taken over when its lease is over.
func (s *Store) RunDeferred(ctx context.Context, o DeferredOptions) {
	setDefault(&o.Lease, 30*time.Second)
	setDefault(&o.Poll, 200*time.Millisecond)
	setDefault(&o.MaxAttempts, 5)
	failing := false // said once: an outage is looked at several times a second
	for ctx.Err() == nil {
		worked, err := s.carryOutNext(ctx, o)
		switch {
		case err == nil:
			failing = false
		case ctx.Err() != nil:
		case worked:
			s.o.Logger.WarnContext(ctx, "a deferred request was not carried out; it is tried again", "error", err)
		case !failing:
			failing = true
			s.o.Logger.WarnContext(ctx, "deferred requests cannot be looked for; it is tried again", "error", err)
		}
		if !worked || err != nil {
			pause(ctx, o.Poll)
		}
	}
}

// leased is a request that this worker has until its lease is over.
type leased struct {
	user     string
	key      order.Key
	refusals int // by the database or by this program, before this attempt
	cmd      *order.Command
	fault    error // why there is no command
}

// carryOutNext takes one request and decides it; false when there is none.
func (s *Store) carryOutNext(ctx context.Context, o DeferredOptions) (bool, error) {
	job, err := s.lease(ctx, o.Lease)
	if err != nil || job == nil {
		return false, err
	}
	dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Lease/2)
	defer cancel()
	if err = job.fault; err == nil {
		_, err = s.decide(dctx, &pending{cmd: job.cmd, deferred: true})
	}
	if !errors.Is(err, order.ErrInternal) || order.OutcomeOf(err) != order.OutcomeNotCommitted {
		return true, err // an outage, if anything, which says nothing of the request
	}
	if job.refusals+1 >= o.MaxAttempts {
		return true, s.failDeferred(dctx, job)
	}
	return true, errors.Join(err, s.countRefusal(dctx, job))
}

// countRefusal notes one more attempt that the database refused, unless somebody
// has ended the request meanwhile.
func (s *Store) countRefusal(ctx context.Context, job *leased) error {
	return s.inTransaction(ctx, "count a refusal", waitingFor(), func(t *transaction) error {
		t.q.reset("UPDATE deferred_requests SET attempts = ")
		t.q.bind(job.refusals + 1)
		t.q.add(" WHERE user_id = ")
		t.q.bind(job.user)
		t.q.add(" AND idempotency_key = ")
		t.q.bind(string(job.key))
		_, err := t.conn.ExecContext(ctx, string(t.q.text), t.q.args...)
		return err
	})
}

// lease takes the request that waits longest and is nobody's, one that cannot be
// read as well: the others are behind it. A lease that ends later than twice its
// length was given by a clock that has gone back since, and is nobody's: it may be
// years. Once its length is what one has that was given while this was asked, and
// twice what one may have of a gateway with another setting.
func (s *Store) lease(ctx context.Context, length time.Duration) (job *leased, err error) {
	err = s.inTransaction(ctx, "lease a deferred request", waitingFor(), func(t *transaction) error {
		job = nil
		var key pair
		var content []byte
		var now instant
		var refusals int
		t.q.reset("SELECT user_id, idempotency_key, content, attempts, " + t.d.now + " FROM deferred_requests WHERE lease_until <= " +
			t.d.now + " OR lease_until > " + t.d.later(2*length) + " ORDER BY lease_until LIMIT 1" + t.d.skipLocked)
		found := false
		if err := t.rows(func(rows *sql.Rows) error {
			found = true
			return rows.Scan(&key.first, &key.second, &content, &refusals, &now)
		}); err != nil || !found {
			return err
		}
		job = &leased{user: key.first, key: order.Key(key.second), refusals: refusals}
		if job.cmd, err = readDeferred(key, content); err != nil {
			job.fault = order.Undecided(order.OutcomeNotCommitted, fmt.Errorf("%w: %w: a deferred request: %w", order.ErrInternal, errUnreadable, err))
		}
		t.q.reset("UPDATE deferred_requests SET lease_until = ")
		t.q.bind(t.d.instant(now.Add(length)))
		t.q.add(" WHERE user_id = ")
		t.q.bind(key.first)
		t.q.add(" AND idempotency_key = ")
		t.q.bind(key.second)
		return t.exec(1)
	})
	return job, err
}

func readDeferred(key pair, content []byte) (*order.Command, error) {
	var c deferredContent
	if err := json.Unmarshal(content, &c); err != nil {
		return nil, err
	}
	return order.NewCommand(c.Operation, key.first, order.Key(key.second), c.Lines)
}

// failDeferred ends a request that can never succeed: as failed, with a reason,
// instead of trying it for ever.
func (s *Store) failDeferred(ctx context.Context, job *leased) error {
	return s.inTransaction(ctx, "fail a deferred request", waitingFor(userRow(job.user)), func(t *transaction) error {
		p := &pending{cmd: &order.Command{UserID: job.user, Key: job.key}}
		group := []*pending{p}
		v := newView()
		if err := t.lockUsers(v, group, t.d.forUpdate); err != nil {
			return err
		}
		if err := t.readRecords(v, group, s.o.Renderer); err != nil {
			return err
		}
		rec := v.records[p.pair()]
		if rec == nil || rec.receipt.State != order.Processing {
			return nil // somebody else has ended it
		}
		rec.receipt.State, rec.receipt.FirstSeen = order.Failed, v.now
		rec.receipt.Response = s.o.Renderer.Rejected(rec.operation, order.Rejection{Code: order.ExecutionFailed})
		return t.settleRecords(&writes{settled: []writtenRecord{{job.user, job.key, rec}}})
	})
}
