package order

import (
	"context"
	"time"
)

// Layer says who answered.
type Layer uint8

// The layers, cheapest first.
const (
	LayerLedger  Layer = iota // a transaction on the database
	LayerRedis                // the shared filter
	LayerProcess              // this process
)

// String returns the name used in logs and metrics.
func (l Layer) String() string {
	switch l {
	case LayerProcess:
		return "process"
	case LayerRedis:
		return "redis"
	default:
		return "mysql"
	}
}

// Kind says what an answer is.
type Kind uint8

// The kinds of answers.
const (
	Created    Kind = iota + 1 // the order was made now
	Replayed                   // an earlier answer, given again
	Rejected                   // refused now, for a business reason
	Reused                     // the key belongs to another content
	InProgress                 // the first attempt is still running
	Accepted                   // recorded, to be carried out later
)

// String returns the name used in logs and metrics.
func (k Kind) String() string {
	switch k {
	case Created:
		return "created"
	case Replayed:
		return "replayed"
	case Rejected:
		return "rejected"
	case Reused:
		return "reused"
	case InProgress:
		return "in_progress"
	case Accepted:
		return "accepted"
	default:
		return "none"
	}
}

// Attempt identifies one arrival of a command to the filter.
type Attempt struct {
	UserID string
	Key    Key
	Digest Digest
}

// Advice is what the filter says of an attempt. None of it is proof.
type Advice uint8

// The advice a filter gives.
const (
	// Bypassed: the filter could not say (error, time-out, open breaker, an
	// entry it cannot read). The ledger decides.
	Bypassed Advice = iota
	// Ours: nobody has the key; this attempt marked it.
	Ours
	// Seen: a receipt is there, for this digest or another.
	Seen
	// Running: somebody marked the key and has not answered yet.
	Running
	// Joined: this process decides the same attempt right now; wait for it.
	Joined
)

// String returns the name used in traces.
func (a Advice) String() string {
	switch a {
	case Ours:
		return "ours"
	case Seen:
		return "seen"
	case Running:
		return "running"
	case Joined:
		return "joined"
	default:
		return "bypassed"
	}
}

// Admission is the filter's word on one attempt.
type Admission struct {
	Advice Advice
	Layer  Layer
	// Digest of whoever holds the key, for Running. For Seen it is in Receipt.
	Digest Digest
	// Age of the mark, for Running. Zero when the holder is known to be alive.
	Age time.Duration
	// Receipt, for Seen.
	Receipt Receipt
	// Ticket must be finished exactly once when it is not nil.
	Ticket Ticket
	// Flight is what to wait for, for Joined.
	Flight Flight
}

// Filter turns duplicates away before they reach the ledger. It is advice:
// whatever it says or fails to say, at most one order is made.
//
// Implementations, which ordertest.RunFilter checks, are safe for concurrent use,
// bound every call by a limit of their own (tens of milliseconds), swallow their
// own failures (the answer is then Bypassed, counted) and never let one user's
// key meet another's.
type Filter interface {
	// Admit looks the attempt up and marks its key if nobody has it.
	Admit(ctx context.Context, a Attempt) Admission
	// Peek tells what each layer knows of a key, without changing anything.
	// Layers that know nothing are left out, but not those that cannot be asked.
	Peek(ctx context.Context, userID string, key Key) []Glimpse
}

// Ticket is an admitted attempt that the filter waits to hear of.
type Ticket interface {
	// Finish tells how the attempt ended: to those who joined it, and to the
	// shared filter. It is bounded by the filter's own limit, works on a
	// cancelled context too, and its failure changes nothing but speed.
	Finish(ctx context.Context, end End)
}

// Flight is an attempt that this process is deciding for somebody else.
type Flight interface {
	// Wait returns the end of the attempt, or ctx's error if that comes first.
	Wait(ctx context.Context) (Answer, error)
}

// Mark says what becomes of the mark in the shared filter.
type Mark uint8

// What becomes of a mark.
const (
	MarkLeft     Mark = iota // leave it: not ours, or the outcome is unknown and it should age out
	MarkReceipt              // overwrite it with End.Receipt, which a committed transaction wrote
	MarkReleased             // delete it if it is still ours: nothing was committed
)

// String returns the name used in traces.
func (m Mark) String() string {
	switch m {
	case MarkReceipt:
		return "receipt"
	case MarkReleased:
		return "released"
	default:
		return "left"
	}
}

// End is how an attempt ended.
type End struct {
	Answer  Answer  // what those who joined get when Err is nil
	Err     error   // what those who joined get otherwise
	Mark    Mark    // what becomes of the mark
	Receipt Receipt // committed truth, for MarkReceipt; may also be set with MarkLeft to remember it in this process
}

// Glimpse is what one layer knows of a key.
type Glimpse struct {
	Layer Layer
	// Unavailable: the layer could not be asked, and nothing else is said.
	Unavailable bool
	Running     bool          // a mark, otherwise a receipt
	Age         time.Duration // of the mark; zero when its holder is known to be alive
	TTL         time.Duration // until the layer forgets; zero when it does not say
	Digest      Digest
	Receipt     Receipt // unless Running
}

// Answer is the result of a submitted command.
type Answer struct {
	Kind       Kind
	Layer      Layer
	Receipt    Receipt       // for Created, Replayed and Rejected: what to answer
	Age        time.Duration // since the key was first seen, for Replayed, Reused and InProgress
	RetryAfter time.Duration // for InProgress and Accepted
	Rejection  *Rejection    // why, for Rejected: not for a refusal that is replayed
}

// Decision is the ledger's word. It is proven.
type Decision struct {
	// Kind is Created, Replayed, Rejected or Reused; InProgress for a request
	// that was accepted to be carried out later.
	Kind Kind
	// Receipt is what was committed. For Reused it is the record that has the
	// key, which the caller must not see. For Rejected without Remembered it is
	// rendered but nowhere stored.
	Receipt Receipt
	// Remembered says that a record of this request is committed.
	Remembered bool
	// Rejection is why, for Rejected. It is for logs and metrics: what is
	// answered is in Receipt.
	Rejection *Rejection
}

// Ledger decides, in one transaction per command or per group of commands.
//
// Implementations are safe for concurrent use and hold these promises, which
// ordertest.RunLedger checks on each:
//
//   - two committed orders never share (user, key, line), whoever wrote them;
//   - a nil error means that the decision is committed, or (Rejected without
//     Remembered, Reused, Replayed) read under the user's lock;
//   - an error is an [*UndecidedError] that says what is known; it wraps
//     [ErrUnavailable], [ErrOverloaded], [ErrShuttingDown], [ErrUnknownUser] or
//     [ErrInternal];
//   - one command's refusal or fault never changes another's outcome.
type Ledger interface {
	// Decide ends before ctx's deadline. Cancelling ctx withdraws a command
	// that has not been started and otherwise leaves its outcome unknown.
	Decide(ctx context.Context, c *Command) (Decision, error)
	// Find reads the record of a key, on the primary. ErrNotFound when there is
	// none at this moment (or no such user); a transaction under way may still
	// commit one. Otherwise an error wraps ErrUnavailable or ErrInternal.
	Find(ctx context.Context, userID string, key Key) (Receipt, error)
	// Confirm is Find behind the user's lock: transactions that were under way
	// are over when it answers.
	Confirm(ctx context.Context, userID string, key Key) (Receipt, error)
	// Identity is the server that last answered.
	Identity() ServerID
}

// Book reads orders, on the primary. Safe for concurrent use.
type Book interface {
	// Order returns the caller's order; ErrNotFound for anybody else's.
	Order(ctx context.Context, userID string, id ID) (Order, error)
	// Orders returns at most limit of the caller's orders, newest first, older
	// than before unless it is zero.
	Orders(ctx context.Context, userID string, before ID, limit int) ([]Order, error)
}

// Accounts provisions users and stock. Safe for concurrent use.
type Accounts interface {
	// SetBalance creates the user or sets the balance.
	SetBalance(ctx context.Context, userID string, balance Amount) error
	// SetStock makes a SKU limited and sets what is available.
	SetStock(ctx context.Context, sku string, available int64) error
}

// Anomaly is something that is safe but that ops must see.
type Anomaly string

// The anomalies.
const (
	// FilterMissed: the filter said that nobody has the key; the ledger knew it.
	FilterMissed Anomaly = "filter_missed"
	// ReceiptLost: the filter had a receipt that the database does not know,
	// as after a failover that lost commits.
	ReceiptLost Anomaly = "receipt_lost"
	// StaleMark: a mark outlived its grace, so its owner is slow or dead.
	StaleMark Anomaly = "stale_mark"
)

// Observer is told what Intake does. Safe for concurrent use; must not block.
type Observer interface {
	Decided(a Answer, err error, took time.Duration)
	// Noticed is told of an anomaly and the age of the record, the receipt or
	// the mark that it is about.
	Noticed(a Anomaly, age time.Duration)
}
