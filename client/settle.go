package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// repeatWait is how long the gateway is asked to wait for an earlier attempt
// that is still running, instead of turning a later one away.
const repeatWait = "wait=5"

// ErrUnsettled is in every [*UnsettledError].
var ErrUnsettled = errors.New("an order may have been made; send the same intent again")

// UnsettledError says that the call ended before the gateway has settled the
// intent: time ran out, or one attempt may have made the order and a later one
// was turned away unread, for its token, say. The order may exist or come to
// exist. The key is kept: calling again for the same intent settles it.
type UnsettledError struct {
	Attempts int
	// RetryAfter is how long the gateway asked to wait at last, or 0.
	RetryAfter time.Duration
	// Last is what became of the last attempt. It may be a [*Problem], which then
	// speaks of that attempt alone.
	Last error
}

// Error says so, and why the last attempt failed.
func (e *UnsettledError) Error() string {
	return fmt.Sprintf("client: not settled after %d attempts: %v (%v)", e.Attempts, ErrUnsettled, e.Last)
}

// Unwrap makes errors.Is work for [ErrUnsettled] and for the last failure.
func (e *UnsettledError) Unwrap() []error { return []error{ErrUnsettled, e.Last} }

// settle sends the content under the key of the intent until the gateway has
// settled it or time runs out. accept reads the answer to a success, and says
// whether it is one.
func (c *Client) settle(ctx context.Context, intent, path string, content any, r *Receipt, accept func([]byte) bool) error {
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if r.Key, err = c.keyOf(ctx, intent); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	unknown := false // an attempt may have made the order, or be about to
	for {
		r.Attempts++
		header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {r.Key}}
		if r.Attempts > 1 {
			header.Set("Prefer", repeatWait)
		}
		a, err := c.attempt(ctx, http.MethodPost, path, header, body)
		r.Sends += a.sends
		unknown = unknown || a.sends > 1 // net/http has lost the answer to the first
		var advice Advice
		switch {
		case errors.Is(err, errNotSent) && r.Attempts == 1:
			return err
		case errors.Is(err, errNotSent):
		case err != nil:
			unknown = true
			advice = adviseWithoutAnswer(err)
		case (a.status == http.StatusCreated || a.status == http.StatusOK) && accept(a.body):
			r.Replayed = a.header.Get("Idempotent-Replayed") == "true"
			r.RequestID = a.header.Get("X-Request-Id")
			return nil
		default:
			advice = advise(a)
			p := advice.Problem
			if p == nil {
				unknown, err = true, foreign(a)
				break
			}
			p.key = r.Key
			err = p
			unknown = unknown || p.Outcome != Rejected && p.Outcome != NotCommitted
			if !advice.Again && (!unknown || p.Verdict()) {
				return p
			}
		}
		if !advice.Again || !wait(ctx, c.o.Backoff.Pause(r.Attempts, advice.After)) {
			return &UnsettledError{Attempts: r.Attempts, RetryAfter: advice.After, Last: errors.Join(err, ctx.Err())}
		}
	}
}

// wait reports whether the pause is over. One that ends after the deadline is
// not begun.
func wait(ctx context.Context, pause time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(deadline) <= pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
