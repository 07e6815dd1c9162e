//go:build linux

package chaos

import (
	"context"
	"time"
)

// every returns a function that is true at once, and then once per period until
// the context ends.
func every(ctx context.Context, period time.Duration) func() bool {
	first := true
	return func() bool {
		if first {
			first = false
			return ctx.Err() == nil
		}
		return pause(ctx, period)
	}
}

// pause waits, and reports whether the context is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
