package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"
)

// transaction is one transaction on a session of its own. Its first error ends
// it: nothing but ROLLBACK is sent afterwards. (After a deadlock the server may
// run further statements by themselves; after a lock wait time-out a COMMIT
// would make one half durable.)
type transaction struct {
	ctx    context.Context //nolint:containedctx // the life of this one attempt
	d      *dialect
	conn   *sql.Conn
	q      *query
	leave  func() // gives its place back; nil for a worker's
	ended  bool   // committed
	broken bool   // the session is in doubt and must not be used again
}

// failure is why an attempt did not answer its commands.
type failure struct {
	fault      fault
	err        error
	committing bool // COMMIT was sent: the outcome is unknown
	users      bool // the row of a user was not given in time
}

// beginBeside begins a transaction that is not a worker's, when there is a place.
func (s *Store) beginBeside(ctx context.Context, rows ...lockedRow) (*transaction, error) {
	leave, err := s.places.take(ctx, rows...)
	if err != nil {
		return nil, err
	}
	t, err := s.begin(ctx, &query{})
	if err != nil {
		leave()
		return nil, err
	}
	t.leave = leave
	return t, nil
}

func (s *Store) begin(ctx context.Context, q *query) (*transaction, error) {
	conn, err := s.writes.Conn(ctx)
	if err != nil {
		return nil, err
	}
	q.d = s.d
	t := &transaction{ctx: ctx, d: s.d, conn: conn, q: q}
	if s.d.begin != "" {
		if _, err := conn.ExecContext(ctx, s.d.begin); err != nil {
			t.broken = true
			t.end()
			return nil, err
		}
	}
	return t, nil
}

// carryOut does some work in a transaction, commits it, and ends it either way.
func (s *Store) carryOut(t *transaction, work func(*transaction) error) error {
	defer t.end()
	if err := work(t); err != nil {
		t.broken = s.d.classify(err) == faultUnavailable
		return err
	}
	return t.commit()
}

// rows runs the built query and calls scan for each row.
func (t *transaction) rows(scan func(*sql.Rows) error) error {
	return scanRows(t.ctx, t.conn, t.q, scan)
}

type queryer interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

func scanRows(ctx context.Context, from queryer, q *query, scan func(*sql.Rows) error) (err error) {
	rows, err := from.QueryContext(ctx, string(q.text), q.args...)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = cerr
		}
	}()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// exec runs the built statement, which must match exactly that many rows.
func (t *transaction) exec(matches int) error {
	r, err := t.conn.ExecContext(t.ctx, string(t.q.text), t.q.args...)
	if err != nil {
		return err
	}
	n, err := r.RowsAffected()
	if err != nil {
		return err
	}
	if n != int64(matches) {
		return errGuard
	}
	return nil
}

// commit fails with [errCommit], and then nothing is known.
func (t *transaction) commit() error {
	if _, err := t.conn.ExecContext(t.ctx, commitText); err != nil {
		t.broken = true
		return fmt.Errorf("%w: %w", errCommit, err)
	}
	t.ended = true
	return nil
}

// end rolls back what was not committed and gives the session back, or closes
// it when it is in doubt: the server then ends the transaction itself.
func (t *transaction) end() {
	if !t.ended && !t.broken {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), time.Second)
		defer cancel()
		_, err := t.conn.ExecContext(ctx, "ROLLBACK")
		t.broken = err != nil
	}
	if t.broken {
		// The pool drops a connection whose user calls it bad.
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = t.conn.Close()
	if t.leave != nil {
		t.leave()
	}
}
