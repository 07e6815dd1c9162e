package order

import "time"

// Status is the state of an order.
type Status string

// The states: PENDING → PAID → SHIPPED, PENDING → CANCELLED.
const (
	Pending   Status = "PENDING"
	Paid      Status = "PAID"
	Shipped   Status = "SHIPPED"
	Cancelled Status = "CANCELLED"
)

// Order is one committed order.
type Order struct {
	ID        ID
	UserID    string
	Line      Line
	Status    Status
	Key       Key // the key it was made with; empty for an unprotected order
	LineNo    int // its row within the command, from 0
	CreatedAt time.Time
	UpdatedAt time.Time
}

// ServerID is a short hash of the identity of the database server that
// committed a receipt. Zero means unknown and never equals anything.
type ServerID uint64

// State says how a remembered request ended.
type State uint8

// The states of an idempotency record, as stored.
const (
	Processing State = 1 // accepted, to be carried out later
	Succeeded  State = 2
	Failed     State = 3 // refused for a business reason; the refusal is the answer
)

// Response is a rendered answer: the bytes that the first caller gets and that
// every replay repeats.
type Response struct {
	Status      int // HTTP status
	ContentType string
	Location    string // empty when there is none
	Body        []byte
}

// Receipt is what a committed transaction wrote about a request. It is
// immutable; its Body must not be changed.
type Receipt struct {
	Digest Digest
	State  State
	// FirstSeen is when the first attempt was decided, by the database's clock; of
	// a request for later, when it was accepted, unless it was refused in the end.
	FirstSeen time.Time
	Server    ServerID // who committed it; zero when read without its identity
	Response  Response
}

// RejectionCode is the business reason of a refusal.
type RejectionCode string

// The business reasons.
const (
	InsufficientBalance RejectionCode = "INSUFFICIENT_BALANCE"
	OutOfStock          RejectionCode = "OUT_OF_STOCK"
	OrderAlreadyExists  RejectionCode = "ORDER_ALREADY_EXISTS"
	// ExecutionFailed ends a deferred request that the database refused time
	// and again: a fault of the deployment, not of the request.
	ExecutionFailed RejectionCode = "EXECUTION_FAILED"
)

// ConflictReason says how a business number is taken.
type ConflictReason string

// The conflict reasons.
const (
	Exists           ConflictReason = "exists"             // by an order of the same content, under another key
	ExistsDifferent  ConflictReason = "exists_different"   // by an order of another content
	DuplicateInBatch ConflictReason = "duplicate_in_batch" // by an earlier row of the same batch
)

// Conflict is one line whose business number is taken.
type Conflict struct {
	Row             int // of the line within the command, from 0
	ExternalOrderNo string
	Reason          ConflictReason
	OrderID         ID       // the order that has the number; zero for DuplicateInBatch
	Fields          []string // which members differ, for ExistsDifferent
}

// Rejection is a refusal decided under the user's lock.
type Rejection struct {
	Code      RejectionCode
	SKU       string     // for OutOfStock
	Conflicts []Conflict // for OrderAlreadyExists, in row order
	// Forgotten: no record of it is kept, so that a late copy of the request may
	// still make its order.
	Forgotten bool
}

// Renderer turns a decision into the bytes that are stored and answered. It is
// pure: the same input gives the same bytes, with nothing of the single request
// (its id, its date) in them. Safe for concurrent use.
type Renderer interface {
	Created(op Operation, orders []Order) Response
	Rejected(op Operation, r Rejection) Response
}
