package cache

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	client, err := OpenClient(ClientOptions{Addrs: []string{startMini(t).Addr()}, OpTimeout: patient})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	tuned := func(change func(*Tuning)) func(*Options) {
		return func(o *Options) {
			t := DefaultTuning()
			change(&t)
			o.Tuning = func() Tuning { return t }
		}
	}
	for text, change := range map[string]func(*Options){
		"a Redis client is required":               func(o *Options) { o.Client = nil },
		"at least 16 bytes":                        func(o *Options) { o.MACKey = make([]byte, 15) },
		"from 0 to 1048576 bytes":                  func(o *Options) { o.MaxBody = maxBody + 1 },
		"bounds of the process tier":               func(o *Options) { o.LocalEntries = -1 },
		"breaker's settings":                       tuned(func(t *Tuning) { t.BreakerOpenFor = 0 }),
		"breaker's settings must be above":         tuned(func(t *Tuning) { t.BreakerFailures = 0 }),
		"operation time-out must":                  tuned(func(t *Tuning) { t.OpTimeout = 0 }),
		"at least 1s (in progress 999ms":           tuned(func(t *Tuning) { t.InProgressTTL = 999 * time.Millisecond }),
		"at least 1s (in progress 10s, receipt 0s": tuned(func(t *Tuning) { t.ReceiptTTL = 0 }),
		"local TTL":                                tuned(func(t *Tuning) { t.LocalTTL = -1 }),
	} {
		o := Options{Client: client, MACKey: macKey()}
		change(&o)
		_, err := New(o)
		require.ErrorContains(t, err, text)
	}
	_, err = New(Options{Client: client, MACKey: macKey()})
	require.NoError(t, err)
}

func TestTwoFiltersCannotShareARegistry(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	mini := startMini(t)
	r := open(t, mini.Addr(), func(s *settings) { s.options.Registerer = registry })
	_, err := New(Options{Client: r.client, MACKey: macKey(), Registerer: registry})
	require.ErrorContains(t, err, "register the metrics")
}

func TestClosedClientOfAClusterIsNoUse(t *testing.T) {
	t.Parallel()
	client, err := OpenClient(ClientOptions{Addrs: []string{startMini(t).Addr()}, OpTimeout: patient, Cluster: true})
	require.NoError(t, err)
	require.NoError(t, client.Close())
	_, err = New(Options{Client: client, MACKey: macKey(), Pipelining: true})
	require.ErrorIs(t, err, redis.ErrClosed)
}

func TestMetricsTellWhatTheFilterDoes(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	r := open(t, startMini(t).Addr(), func(s *settings) { s.options.Registerer = registry })
	r.Admit(t.Context(), attempt("alice", "k")).Ticket.Finish(t.Context(), created())
	r.Admit(t.Context(), attempt("alice", "k2")).Ticket.Finish(t.Context(), released())
	r.Peek(t.Context(), "alice", "k")
	require.NoError(t, r.Health(t.Context()))

	families, err := registry.Gather()
	require.NoError(t, err)
	counts := map[string]uint64{}
	sizes := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			counts[name] = m.GetHistogram().GetSampleCount()
			sizes[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	for command, want := range map[string]uint64{"admit": 2, "settle": 1, "release": 1, "peek": 1, "ping": 1} {
		require.Equal(t, want, counts["oncegate_redis_command_duration_seconds "+command+" ok"], command)
		require.Zero(t, counts["oncegate_redis_command_duration_seconds "+command+" error"])
	}
	require.InDelta(t, 1, sizes["oncegate_filter_local_receipts"], 0)
	require.Positive(t, sizes["oncegate_filter_local_bytes"])
	require.InDelta(t, 1, sizes["oncegate_breaker_state closed"], 0)
	require.Contains(t, sizes, "oncegate_filter_bypassed_total bad_mac")
	require.Contains(t, sizes, "oncegate_filter_unsettled_total timeout")
}

// Callers who leave and a queue that is full must not look like a Redis that fails.
func TestWhatSaysNothingOfRedisIsNotMeasured(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	require.NoError(t, err)
	for _, nobodys := range []error{errCallerLeft, errQueueFull, errInterrupted} {
		m.admit.observe(time.Second, fmt.Errorf("%w: %w", nobodys, context.Canceled))
	}
	m.admit.observe(time.Second, io.EOF)
	m.admit.observe(time.Second, redis.ErrPoolTimeout)
	m.admit.observe(time.Second, redis.Nil)
	families, err := registry.Gather()
	require.NoError(t, err)
	results := map[string]uint64{}
	for _, f := range families {
		for _, series := range f.GetMetric() {
			if n := series.GetHistogram().GetSampleCount(); n > 0 {
				results[series.GetLabel()[1].GetValue()] = n
			}
		}
	}
	require.Equal(t, map[string]uint64{"ok": 1, "timeout": 1, "error": 1}, results)
}
