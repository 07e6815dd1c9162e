package order

import (
	"errors"
	"strings"
)

// The sentinels. Adapters translate their drivers' errors into these, once.
var (
	// ErrUnavailable says that the ledger could not decide in time.
	ErrUnavailable = errors.New("the ledger is unavailable")
	// ErrOverloaded says that a queue is full. Nothing was started.
	ErrOverloaded = errors.New("too many requests are waiting")
	// ErrShuttingDown says that this process takes no more work.
	ErrShuttingDown = errors.New("shutting down")
	// ErrUnknownUser says that the caller has no account.
	ErrUnknownUser = errors.New("the user has no account")
	// ErrNotFound says that there is no such thing for this caller.
	ErrNotFound = errors.New("not found")
	// ErrInternal says that the ledger refused for a reason that a retry does
	// not mend: a fault of the deployment or of this program.
	ErrInternal = errors.New("the ledger refused the statement")
)

// Outcome is what is known of the order when no answer was reached.
type Outcome string

// The outcomes.
const (
	// OutcomeNotCommitted is only said when it is proven. It speaks of this
	// attempt: an earlier one with the same key may have committed, so only the
	// same key is safe to ask again with.
	OutcomeNotCommitted Outcome = "not_committed"
	// OutcomeUnknown is always true: asking again with the same key settles it.
	OutcomeUnknown Outcome = "unknown"
	// OutcomeRejected goes with refusals.
	OutcomeRejected Outcome = "rejected"
)

// UndecidedError says that a command ended without an answer, and what is known.
type UndecidedError struct {
	Outcome Outcome
	Err     error
}

// Undecided wraps a cause with what is known of the order.
func Undecided(outcome Outcome, err error) error { return &UndecidedError{outcome, err} }

func (e *UndecidedError) Error() string { return e.Err.Error() + " (" + string(e.Outcome) + ")" }

// Unwrap returns the cause.
func (e *UndecidedError) Unwrap() error { return e.Err }

// OutcomeOf returns what an error says of the order. An error that does not
// say so proves nothing: the outcome is unknown.
func OutcomeOf(err error) Outcome {
	if u, ok := errors.AsType[*UndecidedError](err); ok {
		return u.Outcome
	}
	return OutcomeUnknown
}

// FieldFault is one fault of a request body.
type FieldFault struct {
	Path   string // such as "quantity" or "orders[3].amount"; empty for the body as a whole
	Reason string // never repeats the value
}

// InvalidError lists the faults of a request body. Nothing was claimed for it.
type InvalidError struct{ Faults []FieldFault }

func (e *InvalidError) Error() string {
	var b strings.Builder
	b.WriteString("the request is invalid")
	for i, f := range e.Faults {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		if f.Path != "" {
			b.WriteString(f.Path + " ")
		}
		b.WriteString(f.Reason)
	}
	return b.String()
}
