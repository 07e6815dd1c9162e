package consumer

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff doubles from first to last, and takes a random half of that off, so
// that what failed together does not come again together.
func backoff(first, last time.Duration, attempt int64) time.Duration {
	d := first
	for ; attempt > 1 && d < last; attempt-- {
		d *= 2
	}
	d = min(d, last)
	return d/2 + rand.N(d/2+1) //nolint:gosec // G404: jitter
}

// pause waits, and reports whether ctx is still alive.
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
