package cache

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// fill writes receipts of n keys.
func (r *rig) fill(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		r.admit(t, attempt("alice", order.Key(fmt.Sprint("k", i))), order.Ours).Ticket.Finish(t.Context(), created())
	}
}

func TestTheMemoryOfEntriesIsMeasured(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	r := open(t, server.Addr, func(s *settings) { s.options.Prefix = `shop[1]*` })
	other := open(t, server.Addr, func(s *settings) { s.options.Prefix = "shop1x" })
	none, err := r.Footprint(t.Context())
	require.NoError(t, err)
	require.Equal(t, Footprint{}, none)

	other.fill(t, 5)
	f, err := r.Footprint(t.Context())
	require.NoError(t, err)
	require.Zero(t, f.Entries, "entries of another prefix are not ours")

	const keys = 2000
	before, err := r.client.Do(t.Context(), "MEMORY", "STATS").Result()
	require.NoError(t, err)
	r.fill(t, keys)
	after, err := r.client.Do(t.Context(), "MEMORY", "STATS").Result()
	require.NoError(t, err)
	f, err = r.Footprint(t.Context())
	require.NoError(t, err)
	require.Positive(t, f.Entries)
	require.LessOrEqual(t, f.Entries, footprintEntries)
	require.True(t, f.Overhead)
	// What the server itself allocated for these keys; its buffers and the sizes
	// of its tables make the difference.
	really := (number(pairs(after)["total.allocated"]) - number(pairs(before)["total.allocated"])) / keys
	require.InEpsilon(t, really, f.BytesPerKey, .5)
}

func TestTheMemoryOfTheEmbeddedRedisIsMeasuredToo(t *testing.T) {
	t.Parallel()
	embedded, err := OpenEmbedded(patient)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, embedded.Close()) })
	filter, err := New(Options{Client: embedded.Client, MACKey: macKey(), Tuning: func() Tuning {
		t := DefaultTuning()
		t.OpTimeout = patient
		return t
	}})
	require.NoError(t, err)
	r := &rig{Filter: filter, client: embedded.Client}
	r.fill(t, 3)
	f, err := r.Footprint(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, f.Entries)
	require.False(t, f.Overhead, "it does not tell")
	require.Positive(t, f.BytesPerKey)
}

func TestNothingIsMeasuredWhereRedisIsAway(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	r := open(t, server.Addr, withOpTimeout(hurried, func(s *settings) { quick(s); s.tuning.BreakerOpenFor = time.Hour }))
	server.Stop()
	_, err := r.Footprint(t.Context())
	require.Error(t, err)
	require.Eventually(t, func() bool {
		r.Admit(t.Context(), attempt("alice", "k")).Ticket.Finish(t.Context(), order.End{})
		return r.stateIs(t, gobreaker.StateOpen)
	}, hung, time.Millisecond)
	_, err = r.Footprint(t.Context())
	require.ErrorContains(t, err, "left alone")
}

func TestOverheadIsReadInBothFormsOfTheProtocol(t *testing.T) {
	t.Parallel()
	want := map[string]any{"a": int64(1), "b": "2"}
	require.Equal(t, want, pairs(map[any]any{"a": int64(1), "b": "2"}))
	require.Equal(t, want, pairs([]any{"a", int64(1), "b", "2", "left over"}))
	require.Empty(t, pairs(redis.Nil))
	require.InDelta(t, 2, number("2"), 0)
	require.InDelta(t, 2.5, number(2.5), 0)
	require.Zero(t, number(nil))
}

func TestMovesOfTheBreakerAreTold(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []string
	now := quickTuning()
	server := testserver.StartRedis(t)
	r := open(t, server.Addr, withOpTimeout(hurried, func(s *settings) {
		s.options.BreakerMoved = func(from, to, reason string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, from+" "+to+" "+reason)
		}
		s.options.Tuning = func() Tuning {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
	}))
	ask := func() {
		r.Admit(t.Context(), attempt("alice", "k")).Ticket.Finish(t.Context(), order.End{})
	}
	server.Stop()
	require.Eventually(t, func() bool { ask(); return r.stateIs(t, gobreaker.StateOpen) }, hung, time.Millisecond)
	// A change of its setting closes the breaker, and that is told as well.
	mu.Lock()
	now.BreakerOpenFor = 2 * time.Hour
	mu.Unlock()
	ask()
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"closed open timeout", "open closed "}, told[:2])
}

func quickTuning() Tuning {
	t := DefaultTuning()
	t.OpTimeout, t.BreakerFailures, t.BreakerOpenFor = hurried, 3, time.Hour
	return t
}
