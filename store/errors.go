package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/oncegate/oncegate/order"
)

// fault is what a driver's error means for the transaction that met it. After
// any of them the transaction is over: nothing more is sent on it.
type fault uint8

const (
	faultPermanent   fault = iota // a retry meets it again
	faultConflict                 // chosen as a victim: retry the whole group
	faultLockWait                 // a row lock was not given in time: retry, but apart from the others
	faultDuplicate                // a unique index spoke: decide again, one by one
	faultReference                // a foreign key spoke: decide again, one by one
	faultUnavailable              // the server or the way to it is away: retry on a new connection
)

// String returns the name used in metrics.
func (f fault) String() string {
	switch f {
	case faultConflict:
		return "conflict"
	case faultLockWait:
		return "lock_wait"
	case faultDuplicate:
		return "duplicate"
	case faultReference:
		return "reference"
	case faultUnavailable:
		return "unavailable"
	default:
		return "permanent"
	}
}

// classifyCommon sorts the errors that come from database/sql itself.
func classifyCommon(err error) fault {
	switch {
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, errGuard):
		return faultUnavailable
	default:
		return faultPermanent
	}
}

// errGuard says that a guarded update matched another number of rows than the
// locks promised: somebody changed a locked row, or a proxy answered for it.
var errGuard = errors.New("a guarded update did not match the rows that were locked")

// errPanic says that an attempt panicked; the log says how.
var errPanic = errors.New("a panic in the ledger")

// errCommit says that COMMIT was sent, and not answered with success. Whatever
// the server's error says, the outcome is unknown.
var errCommit = errors.New("commit")

// faultOf sorts an error of a transaction.
func (s *Store) faultOf(err error) fault {
	if errors.Is(err, errCommit) {
		return faultUnavailable
	}
	return s.d.classify(err)
}

// translate turns a driver's error of a plain read or write into the domain's.
func (s *Store) translate(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return order.ErrNotFound
	case s.faultOf(err) == faultPermanent:
		return fmt.Errorf("%s: %w: %w", doing, order.ErrInternal, err)
	default:
		return fmt.Errorf("%s: %w: %w", doing, order.ErrUnavailable, err)
	}
}
