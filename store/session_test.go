package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// brittle is a driver that panics once, at one of its calls.
type brittle struct {
	session
	at     string
	closed int
}

func (b *brittle) breakAt(call string) {
	if b.at == call {
		b.at = ""
		panic("index out of range")
	}
}

func (b *brittle) Connect(context.Context) (driver.Conn, error) {
	b.breakAt("connect")
	return b, nil
}

func (b *brittle) Driver() driver.Driver { return nil }

func (b *brittle) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	b.breakAt("exec")
	return driver.RowsAffected(1), nil
}

func (b *brittle) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	b.breakAt("query")
	return noRows{}, nil
}

func (b *brittle) PrepareContext(context.Context, string) (driver.Stmt, error) {
	b.breakAt("prepare")
	return noStmt{}, nil
}

func (b *brittle) ResetSession(context.Context) error {
	b.breakAt("reset")
	return nil
}

func (b *brittle) CheckNamedValue(*driver.NamedValue) error { return nil }

func (b *brittle) IsValid() bool { return true }

func (b *brittle) Close() error {
	b.closed++
	return nil
}

type noStmt struct{ driver.Stmt }

func (noStmt) Close() error { return nil }

type noRows struct{}

func (noRows) Columns() []string         { return []string{"c"} }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }

// A panic of the driver ends its session, and neither holds up whoever gives the
// session back nor costs the pool a place.
func TestAPanicOfTheDriverEndsItsSessionAlone(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"connect", "exec", "query", "prepare", "reset"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			b := &brittle{}
			db := sql.OpenDB(connector{b})
			db.SetMaxOpenConns(1)
			s := &Store{d: mysqlDialect(serverInfo{}), writes: db}
			require.NoError(t, allCalls(s))
			b.at = at
			if at == "connect" {
				db.SetMaxIdleConns(-1) // so that there is none
			}
			ended := make(chan error, 1)
			go func() { ended <- allCalls(s) }()
			select {
			case err := <-ended:
				if at == "reset" {
					require.NoError(t, err, "the pool has taken another session")
				} else {
					require.ErrorIs(t, err, errDriver)
					require.ErrorContains(t, err, "index out of range")
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it waits for ever")
			}
			require.Empty(t, b.at, "it has panicked")
			require.Equal(t, 1, b.closed)
			require.NoError(t, allCalls(s), "its place is free")
			require.NoError(t, db.Close())
		})
	}
}

// allCalls has a transaction use the driver in each way.
func allCalls(s *Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tx, err := s.begin(ctx, &query{})
	if err != nil {
		return err
	}
	return s.carryOut(tx, func(tx *transaction) error {
		stmt, err := tx.conn.PrepareContext(ctx, "SELECT 1")
		if err != nil {
			return err
		}
		defer func() { _ = stmt.Close() }()
		tx.q.reset("SELECT 1")
		if err := tx.rows(func(*sql.Rows) error { return nil }); err != nil {
			return err
		}
		return tx.exec(1)
	})
}

// A panic at an answer to COMMIT leaves open what became of it.
func TestAPanicOfTheDriverAtCommitIsInDoubt(t *testing.T) {
	t.Parallel()
	b := &brittle{at: "exec"}
	db := sql.OpenDB(connector{b})
	s := &Store{d: mysqlDialect(serverInfo{}), writes: db}
	tx, err := s.begin(t.Context(), &query{})
	require.NoError(t, err)
	err = tx.commit()
	tx.end()
	require.ErrorIs(t, err, errDriver)
	require.Equal(t, faultUnavailable, s.faultOf(err))
	require.Equal(t, 1, b.closed)
	require.NoError(t, db.Close())
}
