package order

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
)

// Effect classifies what a change of state came to. None of them is an error:
// a change that arrives twice, late or in vain has been dealt with.
type Effect string

// The effects of a change.
const (
	// Applied: it happened now.
	Applied Effect = "applied"
	// AlreadyThere: the order was in that state before.
	AlreadyThere Effect = "already_there"
	// Stale: the order is past that state.
	Stale Effect = "stale"
	// Impossible: the order can never get there from where it is. Money that
	// came with it is owed back.
	Impossible Effect = "impossible"
	// Noted: an event that changes no state.
	Noted Effect = "noted"
	// WrongAmount: a payment of another sum than the order's; not applied.
	WrongAmount Effect = "wrong_amount"
	// Parked: a message id that was used for another content; not applied.
	Parked Effect = "parked"
)

// EventType names what happened to an order.
type EventType string

// The events.
const (
	EventCancelled        EventType = "order.cancelled"
	EventShipped          EventType = "order.shipped"
	EventPaymentSucceeded EventType = "payment.succeeded"
	EventPaymentFailed    EventType = "payment.failed"
	EventPaymentRefunded  EventType = "payment.refunded"
)

// Transition is the result of a change.
type Transition struct {
	Effect Effect
	// Duplicate says that this very message was dealt with before; Effect is
	// what it came to then.
	Duplicate bool
	// RefundOwed says that a payment was taken that the order cannot use, and
	// that no message has told of before; for a Duplicate, what it said then.
	RefundOwed bool
	Order      Order // as it is now; zero for Parked
}

// PaymentMessage is one delivery of a payment event, by callback or broker.
type PaymentMessage struct {
	Consumer          string // who deduplicates: two consumers of one message do not meet
	MessageID         string
	Digest            Digest // of the content: the same id with another content is parked
	Body              []byte // kept only when parked
	Type              EventType
	OrderID           ID
	Amount            Amount
	ProviderReference string
}

// Limits of a payment message, in characters.
const (
	MaxMessageIDLen = 255
	MaxReferenceLen = 128
)

// ContentDigest hashes what the event means, as length-prefixed fields. Spelling
// does not reach it: a provider may write the same event differently the next
// time, and send it by callback and by broker. The leading version must change
// whenever the form does; a golden test pins it.
func (m *PaymentMessage) ContentDigest() Digest {
	var form []byte
	for _, field := range []string{
		"oncegate.payment/1", string(m.Type), m.OrderID.String(), m.Amount.String(), m.ProviderReference,
	} {
		form = binary.BigEndian.AppendUint64(form, uint64(len(field)))
		form = append(form, field...)
	}
	return sha256.Sum256(form)
}

// Validate lists the faults of a message's fields.
func (m *PaymentMessage) Validate() error {
	var faults []FieldFault
	switch m.Type {
	case EventPaymentSucceeded, EventPaymentFailed, EventPaymentRefunded:
	default:
		faults = append(faults, FieldFault{"type", "must be payment.succeeded, payment.failed or payment.refunded"})
	}
	if m.Amount < 1 || m.Amount > MaxAmount {
		faults = append(faults, FieldFault{"data.amount", "must be from 0.01 to " + MaxAmount.String()})
	}
	if reason := textFault(m.ProviderReference, MaxReferenceLen); reason != "" {
		faults = append(faults, FieldFault{"data.provider_reference", reason})
	}
	if reason := textFault(m.MessageID, MaxMessageIDLen); reason != "" {
		faults = append(faults, FieldFault{"message id", reason})
	}
	if len(faults) > 0 {
		return &InvalidError{Faults: faults}
	}
	return nil
}

// Lifecycle moves orders through their states. Every change is one conditional
// update in one transaction with its event, so nothing moves backwards and
// nothing happens twice. Safe for concurrent use.
//
// Errors: [ErrNotFound] when there is no such order (for this caller), and
// nothing was stored; otherwise an error that wraps [ErrUnavailable] or
// [ErrInternal]. After an error, calling again is safe.
type Lifecycle interface {
	// Cancel ends a pending order of the caller and gives its amount and its
	// stock back, once. Impossible when it was paid.
	Cancel(ctx context.Context, userID string, id ID) (Transition, error)
	// Ship marks a paid order as shipped.
	Ship(ctx context.Context, id ID) (Transition, error)
	// Apply deals with one delivery of a payment event. The message, its effect
	// and its event are committed together when it returns nil: then, and not
	// before, it may be acknowledged.
	Apply(ctx context.Context, m PaymentMessage) (Transition, error)
}

// Next tells what a change to a state comes to for an order that is in another.
func Next(from, to Status) Effect {
	switch {
	case from == to:
		return AlreadyThere
	case from == Pending && (to == Paid || to == Cancelled), from == Paid && to == Shipped:
		return Applied
	case from == Shipped && to == Paid:
		return Stale
	default:
		return Impossible
	}
}
