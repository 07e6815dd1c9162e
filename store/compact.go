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
// answered from the order's row, and the key of a refusal is free again. Several runs at once share the work: a
// record that another run has locked is passed over.
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
	at := position{created: from}
	for {
		var next position
		var batch Compacted
		err := s.inTransaction(ctx, "compact records", func(t *transaction) error {
			next, batch = at, Compacted{}
			return t.compact(&next, cutoff, o.Batch, &batch)
		})
		if err != nil {
			return done, err
		}
		done.Emptied += batch.Emptied
		done.Removed += batch.Removed
		if next == at {
			return done, s.compactedUntil(ctx, cutoff)
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

// compact deals with the next records behind a position and moves it on.
func (t *transaction) compact(at *position, cutoff time.Time, limit int, done *Compacted) error {
	q := t.q
	q.reset("SELECT user_id, idempotency_key, status, response_body IS NOT NULL, created_at FROM idempotency_records WHERE created_at >= ")
	q.bind(t.d.instant(at.created))
	q.add(" AND created_at < ")
	q.bind(t.d.instant(cutoff))
	q.add(" AND (created_at > ")
	q.bind(t.d.instant(at.created))
	q.add(" OR user_id > ")
	q.bind(at.key.first)
	q.add(" OR (user_id = ")
	q.bind(at.key.first)
	q.add(" AND idempotency_key > ")
	q.bind(at.key.second)
	q.add(")) ORDER BY created_at, user_id, idempotency_key LIMIT ")
	q.bind(limit)
	q.add(t.d.skipLocked)
	var empty, remove []pair
	err := t.rows(func(rows *sql.Rows) error {
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
		return err
	}
	if err := t.forgetKeys(empty); err != nil {
		return err
	}
	if len(empty) > 0 && !flawExpiredKeyIsNew {
		q.reset("UPDATE idempotency_records SET response_body = NULL WHERE ")
		q.pairs("idempotency_key", sortedPairs(empty))
		if err := t.exec(len(empty)); err != nil {
			return err
		}
	}
	if len(remove) > 0 {
		q.reset("DELETE FROM idempotency_records WHERE ")
		q.pairs("idempotency_key", sortedPairs(remove))
		if err := t.exec(len(remove)); err != nil {
			return err
		}
	}
	done.Emptied += int64(len(empty))
	done.Removed += int64(len(remove))
	return nil
}
