package order

import (
	"context"
	"errors"
	"time"
)

// RequestStatus is what became of the request with a key.
type RequestStatus struct {
	State      State // Processing, Succeeded or Failed
	Receipt    Receipt
	RetryAfter time.Duration // for Processing
}

// Status tells the caller what became of the request with a key: ErrNotFound
// when this caller never used it. Processing is only said while it is true: a
// mark beyond its grace is checked behind the user's lock.
func (in *Intake) Status(ctx context.Context, userID string, key Key) (RequestStatus, error) {
	t := in.o.Tuning()
	ctx, cancel := context.WithTimeout(ctx, t.Budget)
	defer cancel()
	// The filter is asked first: whoever is running there and is done before
	// the ledger is read is found in the ledger.
	running := false
	for _, g := range in.o.Filter.Peek(ctx, userID, key) {
		running = running || g.Running && g.Age <= t.InProgressGrace
	}
	r, err := in.o.Ledger.Find(ctx, userID, key)
	if errors.Is(err, ErrNotFound) && !running {
		r, err = in.o.Ledger.Confirm(ctx, userID, key)
	}
	switch {
	case err == nil && r.State == Processing, errors.Is(err, ErrNotFound) && running:
		return RequestStatus{State: Processing, RetryAfter: time.Second}, nil
	case err != nil:
		return RequestStatus{}, err
	default:
		return RequestStatus{State: r.State, Receipt: r}, nil
	}
}
