package gateway

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestABucketRefillsAndGivesChange(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	r, err := newRates(0, func() time.Time { return now })
	require.NoError(t, err)
	tuning := &Tuning{RatePerSecond: 2, RateBurst: 3}
	for range 3 {
		_, ok := r.take("alice", 1, tuning)
		require.True(t, ok)
	}
	wait, ok := r.take("alice", 1, tuning)
	require.False(t, ok)
	require.Equal(t, 500*time.Millisecond, wait)
	_, ok = r.take("bob", 1, tuning)
	require.True(t, ok, "users have buckets of their own")

	now = now.Add(wait)
	_, ok = r.take("alice", 1, tuning)
	require.True(t, ok)

	now = now.Add(500 * time.Millisecond)
	taken := 0
	for range 100 {
		if _, ok := r.take("alice", 1, tuning); !ok {
			break
		}
		taken++
		r.giveBack("alice", 1, tuning)
	}
	require.Equal(t, 1, taken, "a replay needs a whole token in hand, and costs a tenth")
	now = now.Add(50 * time.Millisecond)
	_, ok = r.take("alice", 1, tuning)
	require.True(t, ok)

	now = now.Add(time.Hour)
	_, ok = r.take("alice", 500, tuning)
	require.True(t, ok, "a batch above the burst is possible, alone")
	_, ok = r.take("alice", replayCost, tuning)
	require.False(t, ok)
}

func TestNoRateMeansNoLimit(t *testing.T) {
	t.Parallel()
	r, err := newRates(1, time.Now)
	require.NoError(t, err)
	for range 1000 {
		_, ok := r.take("alice", 1, &Tuning{})
		require.True(t, ok)
	}
}

func TestABucketNeverGivesMoreThanItsBurstAtOnce(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0)
	r, err := newRates(0, func() time.Time { return at })
	require.NoError(t, err)
	var mu sync.Mutex
	var wg sync.WaitGroup
	taken := 0
	for range 64 {
		wg.Go(func() {
			if _, ok := r.take("alice", 1, &Tuning{RatePerSecond: 1, RateBurst: 10}); ok {
				mu.Lock()
				taken++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, 10, taken)
}
