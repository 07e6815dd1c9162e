package client

import (
	"math/rand/v2"
	"time"
)

// Backoff is how long to pause between attempts: exponential with full jitter,
// so that clients that failed together do not come back together.
type Backoff struct {
	Base time.Duration // longest pause after the first attempt; default 200 ms
	Cap  time.Duration // longest pause at all; default 10 s
}

// Pause returns how long to wait after attempt number n, counted from 1. It is
// never less than after, which the gateway asked for; the jitter comes on top,
// since everybody who was turned away was told the same time.
func (b Backoff) Pause(n int, after time.Duration) time.Duration {
	return max(0, after) + rand.N(b.window(n)+1) //nolint:gosec // G404: jitter is no secret
}

func (b Backoff) window(n int) time.Duration {
	base, limit := b.Base, b.Cap
	if base == 0 {
		base = 200 * time.Millisecond
	}
	if limit == 0 {
		limit = 10 * time.Second
	}
	for ; n > 1 && base < limit; n-- {
		base *= 2
	}
	return min(base, limit)
}
