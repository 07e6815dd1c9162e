package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime/debug"
)

// errDriver says that the driver panicked, as it may at a packet it cannot read.
var errDriver = errors.New("a panic in the driver")

// caught turns a panic of the driver into an error. It is to be deferred.
func caught(err *error) {
	if p := recover(); p != nil { //nolint:revive // it is deferred itself
		*err = fmt.Errorf("%w: %v\n%s", errDriver, p, debug.Stack())
	}
}

// session is what database/sql uses of the driver's connection.
type session interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

func asSession(conn driver.Conn) (session, error) {
	s, ok := conn.(session)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's %T is no session", conn), conn.Close())
	}
	return s, nil
}

// guardedSession is a session whose panics are errors. Through database/sql a panic
// leaves a lock held that whoever gives the session back waits for without end, or
// the pool one place short. After one the session is good for nothing but its end.
type guardedSession struct {
	session
	panicked bool // by whoever has the session
}

// during runs a call of the driver.
func (s *guardedSession) during(call func() error) (err error) {
	if s.panicked {
		return driver.ErrBadConn
	}
	s.panicked = true
	defer caught(&err)
	err = call()
	s.panicked = false
	return err
}

// ExecContext implements [driver.ExecerContext].
func (s *guardedSession) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (r driver.Result, err error) {
	err = s.during(func() error {
		r, err = s.session.ExecContext(ctx, text, args)
		return err
	})
	return r, err
}

// QueryContext implements [driver.QueryerContext].
func (s *guardedSession) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = s.during(func() error {
		rows, err = s.session.QueryContext(ctx, text, args)
		return err
	})
	return rows, err
}

// PrepareContext implements [driver.ConnPrepareContext].
func (s *guardedSession) PrepareContext(ctx context.Context, text string) (stmt driver.Stmt, err error) {
	err = s.during(func() error {
		stmt, err = s.session.PrepareContext(ctx, text)
		return err
	})
	return stmt, err
}

// ResetSession implements [driver.SessionResetter]. The pool takes another session
// where this one is called bad, and uses it after any other error.
func (s *guardedSession) ResetSession(ctx context.Context) error {
	err := s.during(func() error { return s.session.ResetSession(ctx) })
	if errors.Is(err, errDriver) {
		return fmt.Errorf("%w: %w", driver.ErrBadConn, err)
	}
	return err
}

// IsValid implements [driver.Validator].
func (s *guardedSession) IsValid() bool { return !s.panicked && s.session.IsValid() }

// Close implements [driver.Conn].
func (s *guardedSession) Close() (err error) {
	defer caught(&err)
	return s.session.Close()
}
