package drive

import (
	"context"
	"time"
)

// coarse is how long before the instant the runtime's timers are left: they are
// a millisecond late on an idle process, which would be most of the response
// time of a fast server.
const coarse = 1500 * time.Microsecond

// SleepUntil returns at the instant, as exactly as the system allows. It reports
// false when the context ended first.
func SleepUntil(ctx context.Context, at time.Time) bool {
	if left := time.Until(at); left > coarse {
		if !wait(ctx, left-coarse) {
			return false
		}
	}
	if left := time.Until(at); left > 0 {
		sleepExact(left)
	}
	return ctx.Err() == nil
}

// wait waits for a while and reports false when the context ended first.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
