package gateway

import (
	"fmt"
	"math"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// replayCost is what a request costs that makes no order, where a new order
// costs 1: a client that retries as it was told must not be punished for it.
const replayCost = 0.1

// rates limits how fast each user may make orders, in this process. It
// remembers the most recent users only; a forgotten one starts with a full
// bucket. Safe for concurrent use.
//
// A bucket is paid in full before the work and gets change back afterwards,
// which a limiter with reservations cannot do once the time has come.
type rates struct {
	now     func() time.Time
	buckets *lru.Cache[string, *bucket]
}

type bucket struct {
	mu     sync.Mutex
	tokens float64
	at     time.Time
}

func newRates(users int, now func() time.Time) (*rates, error) {
	if users == 0 {
		users = 100_000
	}
	buckets, err := lru.New[string, *bucket](users)
	if err != nil {
		return nil, fmt.Errorf("rate limit: %w", err)
	}
	return &rates{now, buckets}, nil
}

// take charges a user. When the bucket does not hold enough, it takes nothing
// and returns how long it will be until it does. A cost above the burst is
// charged as the burst, so that a big batch is possible, alone.
func (r *rates) take(user string, cost float64, t *Tuning) (wait time.Duration, ok bool) {
	if t.RatePerSecond <= 0 {
		return 0, true
	}
	burst := max(1, t.RateBurst)
	cost = min(cost, burst)
	now := r.now()
	b, known := r.buckets.Get(user)
	if !known {
		fresh := &bucket{tokens: burst, at: now}
		if other, raced, _ := r.buckets.PeekOrAdd(user, fresh); raced {
			b = other
		} else {
			b = fresh
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if passed := now.Sub(b.at); passed > 0 {
		b.tokens += passed.Seconds() * t.RatePerSecond
		b.at = now
	}
	b.tokens = min(b.tokens, burst)
	if b.tokens < cost {
		seconds := (cost - b.tokens) / t.RatePerSecond
		return time.Duration(math.Ceil(min(seconds, 3600) * float64(time.Second))), false
	}
	b.tokens -= cost
	return 0, true
}

// giveBack returns what was taken for a request that made no order, less what
// such a request costs.
func (r *rates) giveBack(user string, cost float64, t *Tuning) {
	if t.RatePerSecond <= 0 {
		return
	}
	if b, known := r.buckets.Peek(user); known {
		b.mu.Lock()
		b.tokens += min(cost, max(1, t.RateBurst)) - replayCost
		b.mu.Unlock()
	}
}
