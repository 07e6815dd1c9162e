package insight

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func TestEveryAnswerIsCountedOnceAndInItsPlace(t *testing.T) {
	t.Parallel()
	r, _ := newRecorder(t)
	say := func(k order.Kind, l order.Layer, n int) {
		for range n {
			r.Decided(order.Answer{Kind: k, Layer: l, Age: time.Second}, nil, time.Millisecond)
		}
	}
	say(order.Created, order.LayerLedger, 5)
	say(order.Rejected, order.LayerLedger, 2)
	say(order.Replayed, order.LayerProcess, 7)
	say(order.Replayed, order.LayerRedis, 11)
	say(order.Replayed, order.LayerLedger, 3)
	say(order.InProgress, order.LayerRedis, 1)
	say(order.Accepted, order.LayerLedger, 4) // a batch for later
	say(order.Reused, order.LayerRedis, 6)
	r.Decided(order.Answer{}, errors.New("away"), time.Second)
	r.Noticed(order.FilterMissed, time.Second)
	r.Noticed(order.ReceiptLost, time.Second)
	r.Noticed(order.StaleMark, time.Second)

	s := r.Stats(t.Context())
	require.Equal(t, Totals{
		Received: 40, Process: 7, Redis: 18, MySQL: 3, Created: 5, Rejected: 2, Accepted: 4, Failed: 1, Reused: 6, Duplicates: 22,
	}, s.Funnel)
	require.Equal(t, s.Funnel.Received, s.Funnel.Process+s.Funnel.Redis+s.Funnel.MySQL+s.Funnel.Created+s.Funnel.Rejected+s.Funnel.Accepted+s.Funnel.Failed)
	require.Equal(t, Anomalies{1, 1, 1}, s.Anomalies)

	seen := r.TTL(.99, time.Minute)
	require.Equal(t, uint64(22), seen.Retries.Count, "conflicts are no retries, and batches for later are new")
	require.Equal(t, uint64(7), seen.Retries.Process)
	require.Equal(t, uint64(12), seen.Retries.Redis)
	require.Equal(t, uint64(3), seen.Retries.MySQL)

	names := map[string]uint64{}
	for _, l := range s.Latency {
		names[l.Outcome] = l.Count
	}
	require.Equal(t, map[string]uint64{
		"created": 5, "rejected": 2, "replayed_process": 7, "replayed_redis": 11, "replayed_mysql": 3,
		"in_progress": 1, "accepted": 4, "reused": 6, "failed": 1,
	}, names)
}

func TestAnAnswerOfAnUnknownKindIsNoPanic(t *testing.T) {
	t.Parallel()
	r, _ := newRecorder(t)
	r.Decided(order.Answer{Kind: 250, Layer: 250}, nil, -time.Second)
	require.Equal(t, uint64(1), r.Stats(t.Context()).Funnel.Failed)
}

func TestRatesAndLatenciesAreOfTheRecentPast(t *testing.T) {
	t.Parallel()
	r, c := newRecorder(t)
	second := func(n int) {
		r.Conflicted(Conflict{})
		for range n {
			r.Decided(order.Answer{Kind: order.Created, Layer: order.LayerLedger}, nil, 4*time.Millisecond)
		}
		c.advance(time.Second)
	}
	for n := 1; n <= 120; n++ {
		second(100)
		r.sample(n%snapshotEvery == 0)
	}
	s := r.Stats(t.Context())
	require.InDelta(t, 100, s.Rates.Created, 1)
	require.InDelta(t, 100, s.Rates.Received, 1)
	require.InDelta(t, 1, s.Rates.Conflicts, .1)
	require.Len(t, s.Latency, 1)
	require.InDelta(t, 4, s.Latency[0].P99, .5)
	require.InDelta(t, 6000, s.Latency[0].Count, 600, "a minute's worth")
	require.Len(t, s.History, 24)
	require.InDelta(t, 100, s.History[20].Created, 1)
	require.InDelta(t, 4, s.History[20].Latency["created"][1], .5)
	require.Equal(t, s.History[23], *s.Point)

	for n := 1; n <= 120; n++ { // nothing comes any more
		c.advance(time.Second)
		r.sample(n%snapshotEvery == 0)
	}
	s = r.Stats(t.Context())
	require.Zero(t, s.Rates.Received)
	require.Empty(t, s.Latency)
	require.Equal(t, uint64(12000), s.Funnel.Created, "the funnel is since the start")
}

// Whoever asks for the numbers while the database and Redis take long to say how
// they are gets rates all the same, and none below zero.
func TestRatesAreSoundHoweverLongTheSurroundingsTake(t *testing.T) {
	t.Parallel()
	r, c := newRecorder(t)
	r.o.State = func(context.Context) State {
		for range 2 * rateWindow {
			r.Decided(order.Answer{Kind: order.Created, Layer: order.LayerLedger}, nil, time.Millisecond)
			c.advance(time.Second)
			r.sample(false)
		}
		return State{}
	}
	s := r.Stats(t.Context())
	require.InDelta(t, 1, s.Rates.Created, .2)
	require.Equal(t, uint64(2*rateWindow), s.Funnel.Created)
}

func TestWhatClientsDidLongAgoIsForgotten(t *testing.T) {
	t.Parallel()
	r, c := newRecorder(t)
	retry := func() {
		r.Decided(order.Answer{Kind: order.Replayed, Layer: order.LayerLedger, Age: time.Minute}, nil, time.Millisecond)
	}
	retry()
	for range periodsKept - 1 {
		c.advance(periodLength)
		r.sample(false)
		retry()
	}
	require.Equal(t, uint64(periodsKept), r.TTL(.99).Retries.Count)
	require.InDelta(t, (periodLength * (periodsKept - 1)).Seconds(), r.TTL(.99).ObservedSeconds, 1)
	c.advance(periodLength)
	r.sample(false)
	require.Equal(t, uint64(periodsKept-1), r.TTL(.99).Retries.Count)
	require.InDelta(t, (periodLength * (periodsKept - 1)).Seconds(), r.TTL(.99).ObservedSeconds, 1)
}

func TestRingsKeepTheNewest(t *testing.T) {
	t.Parallel()
	r, _ := newRecorder(t)
	require.NotNil(t, r.Conflicts(), "none is an empty list, in JSON too")
	require.NotNil(t, r.Breaker())
	for n := range conflictsKept + 10 {
		r.Conflicted(Conflict{Code: strconv.Itoa(n)})
	}
	kept := r.Conflicts()
	require.Len(t, kept, conflictsKept)
	require.Equal(t, strconv.Itoa(conflictsKept+9), kept[0].Code)
	require.Equal(t, "10", kept[conflictsKept-1].Code)

	require.Equal(t, "closed", r.Stats(t.Context()).Breaker.State)
	r.BreakerMoved("closed", "open", "timeout")
	require.Equal(t, "open", r.Stats(t.Context()).Breaker.State)
	require.Equal(t, "timeout", r.Breaker()[0].Reason)
}

func TestTheMemoryOfAnEntryIsMeasured(t *testing.T) {
	t.Parallel()
	r, _ := newRecorder(t, func(o *Options) {
		o.Footprint = func(context.Context) (Footprint, error) { return Footprint{BytesPerKey: 321, Entries: 4}, nil }
	})
	require.Nil(t, r.TTL(.99).BytesPerKey)
	run(t, r)
	require.Eventually(t, func() bool { return r.TTL(.99).BytesPerKey != nil }, time.Minute, 10*time.Millisecond)
	require.InDelta(t, 321, r.TTL(.99).BytesPerKey.BytesPerKey, 0)
}

// run runs a recorder until the test ends.
func run(t *testing.T, r *Recorder) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func TestEventsReachWhoeverListens(t *testing.T) {
	t.Parallel()
	r, _ := newRecorder(t)
	stop := run(t, r)
	events, cancel, err := r.Subscribe()
	require.NoError(t, err)
	defer cancel()
	r.Conflicted(Conflict{Code: "IDEMPOTENCY_KEY_REUSED"})
	r.BreakerMoved("closed", "open", "timeout")
	seen := map[string]string{}
	for range 60 { // numbers come every second, and the first may be from before the move
		e := <-events
		seen[e.Name] = string(e.Data)
		if len(seen) == 3 && strings.Contains(seen["stats"], `"state":"open"`) {
			break
		}
	}
	require.Contains(t, seen["conflict"], `"code":"IDEMPOTENCY_KEY_REUSED"`)
	require.Contains(t, seen["breaker"], `"to":"open"`)
	require.Contains(t, seen["stats"], `"state":"open"`)
	require.NotContains(t, seen["stats"], `"history"`)
	stop()
	for range events {
		// until it is closed
	}
	late, _, err := r.Subscribe()
	require.NoError(t, err)
	_, open := <-late
	require.False(t, open, "after the end there is nothing to listen to")
}

func TestASlowReaderIsLetGo(t *testing.T) {
	t.Parallel()
	r, _ := newRecorder(t)
	slow, cancel, err := r.Subscribe()
	require.NoError(t, err)
	for range eventsWaiting + 1 {
		r.BreakerMoved("closed", "open", "timeout")
	}
	n := 0
	for range slow {
		n++
	}
	require.Equal(t, eventsWaiting, n)
	cancel()
	cancel()
	require.False(t, r.feed.wanted())
}

func TestAStormOfConflictsLetsNobodyGo(t *testing.T) {
	t.Parallel()
	r, now := newRecorder(t)
	events, cancel, err := r.Subscribe()
	require.NoError(t, err)
	storm := func() {
		for range 10 * eventsWaiting {
			r.Conflicted(Conflict{})
		}
	}
	storm()
	require.Len(t, events, conflictsTold, "within a second")
	for range 5 {
		now.advance(time.Second)
		storm()
	}
	r.BreakerMoved("closed", "open", "timeout")
	cancel()
	var names []string
	for e := range events {
		names = append(names, e.Name)
	}
	require.Len(t, names, conflictsWaiting+1)
	require.Equal(t, "breaker", names[conflictsWaiting], "what is not a conflict still has its place")
	require.Len(t, r.Conflicts(), conflictsKept)
}

func TestListenersAreBounded(t *testing.T) {
	t.Parallel()
	r, _ := newRecorder(t)
	for range maxSubscribers {
		_, _, err := r.Subscribe()
		require.NoError(t, err)
	}
	_, _, err := r.Subscribe()
	require.ErrorIs(t, err, ErrTooManySubscribers)
	r.Close()
}

func TestARecorderNeedsItsOptions(t *testing.T) {
	t.Parallel()
	_, err := New(Options{})
	require.Error(t, err)
}

func TestTellingIsSafeFromEverywhere(t *testing.T) {
	t.Parallel()
	r, c := newRecorder(t)
	var telling sync.WaitGroup
	const tellers, each = 4, 500
	for range tellers {
		telling.Go(func() {
			for range each {
				r.Decided(order.Answer{Kind: order.Replayed, Layer: order.LayerRedis, Age: time.Minute}, nil, time.Millisecond)
				r.Noticed(order.FilterMissed, 0)
			}
		})
	}
	for range 20 {
		c.advance(periodLength / 4)
		r.sample(true)
		r.Stats(t.Context())
		r.TTL(.99)
	}
	telling.Wait()
	require.Equal(t, uint64(tellers*each), r.Stats(t.Context()).Funnel.Redis)
}

func BenchmarkDecided(b *testing.B) {
	r, _ := newRecorder(b)
	a := order.Answer{Kind: order.Replayed, Layer: order.LayerRedis, Age: time.Minute}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r.Decided(a, nil, 700*time.Microsecond)
		}
	})
}

func TestNoKneeIsProposedThatWouldBeRefused(t *testing.T) {
	t.Parallel()
	bound := 10 * time.Second
	r, err := New(Options{
		Now: time.Now, Logger: slog.New(slog.DiscardHandler), ReceiptTTL: func() time.Duration { return time.Hour },
		Bound: func() time.Duration { return bound },
	})
	require.NoError(t, err)
	require.Nil(t, r.TTL(.99).Knee, "nothing is known")
	require.False(t, r.TTL(.99).KneeRaised)
	for range 100 {
		r.Decided(order.Answer{Kind: order.Replayed, Layer: order.LayerRedis, Age: 3 * time.Second}, nil, 0)
	}
	r.Decided(order.Answer{Kind: order.Replayed, Layer: order.LayerLedger, Age: time.Minute}, nil, 0)
	for _, c := range []struct {
		bound, knee time.Duration
		raised      bool
	}{
		{10 * time.Second, 11 * time.Second, true},
		{9500 * time.Millisecond, 10 * time.Second, true},
		{3072 * time.Millisecond, 4 * time.Second, true}, // the knee itself: it must be longer
		{3 * time.Second, 3072 * time.Millisecond, false},
		{0, 3072 * time.Millisecond, false},
	} {
		bound = c.bound
		got := r.TTL(.99)
		require.NotNil(t, got.Knee)
		require.InDelta(t, c.knee.Seconds(), got.Knee.TTLSeconds, 1e-9, c.bound)
		require.Equal(t, c.raised, got.KneeRaised, c.bound)
		require.InDelta(t, c.bound.Seconds(), got.LongerThanSeconds, 0)
		require.GreaterOrEqual(t, got.Knee.Share, .99)
	}
}
