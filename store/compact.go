package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/oncegate/oncegate/order"
)

// CompactOptions bound one run of [Store.Compact].
type CompactOptions struct {
	// OlderThan is the age beyond which answers are emptied. Required.
	OlderThan time.Duration
	// Batch bounds the records of one transaction. Default 500.
	Batch int
	// Pause lies between two transactions, for the traffic. Default 20 ms.
	Pause time.Duration
}

// Compacted is what one run did.
type Compacted struct {
	Emptied int64 `json:"emptied"` // answers; key, digest and order stay
	Removed int64 `json:"removed"` // refusals
}

const compactionName = "responses"

// Compact empties the stored answers that are older than a limit and removes
// refusals of that age. Orders, their keys and digests stay: a later retry is
// answered from the order's row, and the key of a refusal is free again. Several
// runs at once share the work: a record that another run has locked is passed
// over. Should that run die, or a request that was accepted for later end only
// now, the next run begins there.
func (s *Store) Compact(ctx context.Context, o CompactOptions) (done Compacted, err error) {
	if o.OlderThan <= 0 {
		return done, errors.New("compact: the age must be above zero")
	}
	setDefault(&o.Batch, 500)
	setDefault(&o.Pause, 20*time.Millisecond)
	from, cutoff, err := s.compactionWindow(ctx, o.OlderThan)
	if err != nil {
		return done, err
	}
	at, until := position{created: from}, cutoff
	for {
		var next position
		var batch Compacted
		var left bool
		err := s.inTransaction(ctx, "compact records", waitingFor(), func(t *transaction) (err error) {
			next, batch = at, Compacted{}
			left, err = t.compact(&next, cutoff, o.Batch, &batch)
			return err
		})
		if err != nil {
			return done, err
		}
		if left && until.Equal(cutoff) {
			until = at.created
		}
		done.Emptied += batch.Emptied
		done.Removed += batch.Removed
		if next == at {
			return done, s.compactedUntil(ctx, until)
		}
		at = next
		if !pause(ctx, o.Pause) {
			return done, fmt.Errorf("compact: %w", ctx.Err())
		}
	}
}

// position is a place in the index on created_at, which the key makes unique.
type position struct {
	created time.Time
	key     pair
}

// compactionWindow reads where the last complete run ended, and now minus age,
// both by the database's clock.
func (s *Store) compactionWindow(ctx context.Context, age time.Duration) (from, cutoff time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.ReadTimeout)
	defer cancel()
	var now, until instant
	if err := s.reads.QueryRowContext(ctx, "SELECT "+s.d.now).Scan(&now); err != nil {
		return from, cutoff, s.translate("read the clock", err)
	}
	err = s.reads.QueryRowContext(ctx, "SELECT done_until FROM compaction WHERE name = ?", compactionName).Scan(&until)
	if errors.Is(err, sql.ErrNoRows) {
		until.Time, err = time.Unix(0, 0).UTC(), nil
	}
	return until.Time, now.Add(-age).Truncate(order.TimePrecision), s.translate("read how far compaction is", err)
}

func (s *Store) compactedUntil(ctx context.Context, cutoff time.Time) error {
	q := query{d: s.d}
	q.reset("INSERT INTO compaction (name, done_until) VALUES (")
	q.bind(compactionName)
	q.add(",")
	q.bind(s.d.instant(cutoff))
	q.add(")" + s.d.onDuplicate("name") + "done_until = ")
	q.bind(s.d.instant(cutoff))
	return s.change(ctx, "note how far compaction is", &q)
}

// compact deals with the next records behind a position and moves it on. It reports
// whether some of them are left: somebody else has them, or they have no end yet.
func (t *transaction) compact(at *position, cutoff time.Time, limit int, done *Compacted) (left bool, err error) {
	q, begin := t.q, *at
	q.reset("SELECT user_id, idempotency_key, status, response_body IS NOT NULL, created_at")
	t.behind(begin)
	t.before(cutoff)
	q.add(" ORDER BY created_at, user_id, idempotency_key LIMIT ")
	q.bind(limit)
	q.add(t.d.skipLocked)
	seen := 0
	var empty, remove []pair
	err = t.rows(func(rows *sql.Rows) error {
		seen++
		var state order.State
		var full bool
		var created instant
		if err := rows.Scan(&at.key.first, &at.key.second, &state, &full, &created); err != nil {
			return err
		}
		at.created = created.Time
		switch {
		case state == order.Succeeded && full:
			empty = append(empty, at.key)
		case state == order.Failed:
			remove = append(remove, at.key)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	due, err := t.due(begin, func() {
		if seen < limit {
			t.before(cutoff) // what follows the last of them is left as well
		} else {
			t.upTo(*at)
		}
	})
	if err != nil {
		return false, err
	}
	if err := t.forgetKeys(empty); err != nil {
		return false, err
	}
	if len(empty) > 0 && !flawExpiredKeyIsNew {
		q.reset("UPDATE idempotency_records SET response_body = NULL WHERE ")
		q.pairs("idempotency_key", sortedPairs(empty))
		if err := t.exec(len(empty)); err != nil {
			return false, err
		}
	}
	if len(remove) > 0 {
		q.reset("DELETE FROM idempotency_records WHERE ")
		q.pairs("idempotency_key", sortedPairs(remove))
		if err := t.exec(len(remove)); err != nil {
			return false, err
		}
	}
	done.Emptied += int64(len(empty))
	done.Removed += int64(len(remove))
	return due > len(empty)+len(remove), nil
}

// due counts the records behind one position, up to another, that a run has
// something to do with, now or when they have an end. Those that others have locked
// are among them: one that is ending meanwhile is not seen by its locked row.
func (t *transaction) due(from position, to func()) (n int, err error) {
	t.q.reset("SELECT COUNT(*)")
	t.behind(from)
	to()
	t.q.add(" AND (status IN ")
	list(t.q, []int64{int64(order.Processing), int64(order.Failed)})
	t.q.add(" OR (status = ")
	t.q.bind(int64(order.Succeeded))
	t.q.add(" AND response_body IS NOT NULL))")
	err = t.rows(func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}

// recordsByAge is the index that compaction goes along. Going through a small table
// instead, MySQL locks all of it for one batch; of two runs that meet each then
// passes over what the other has, and both take that for the end.
const recordsByAge = "idx_records_created"

// behind begins the condition for the records behind a position.
func (t *transaction) behind(at position) {
	t.q.add(" FROM idempotency_records" + t.d.byIndex(recordsByAge) + " WHERE ")
	t.beyond(">", at, ">")
}

// upTo ends it with a position, which is one of them.
func (t *transaction) upTo(at position) {
	t.q.add(" AND ")
	t.beyond("<", at, "<=")
}

// beyond is the condition for what lies in one direction of a position; the key
// decides between those of one instant. The first comparison is for the index.
func (t *transaction) beyond(direction string, at position, key string) {
	q := t.q
	q.add("created_at " + direction + "= ")
	q.bind(t.d.instant(at.created))
	q.add(" AND (created_at " + direction + " ")
	q.bind(t.d.instant(at.created))
	q.add(" OR user_id " + direction + " ")
	q.bind(at.key.first)
	q.add(" OR (user_id = ")
	q.bind(at.key.first)
	q.add(" AND idempotency_key " + key + " ")
	q.bind(at.key.second)
	q.add("))")
}

// before ends it with an instant.
func (t *transaction) before(cutoff time.Time) {
	t.q.add(" AND created_at < ")
	t.q.bind(t.d.instant(cutoff))
}
