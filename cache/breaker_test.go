package cache

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

func (r *rig) stateIs(t *testing.T, s gobreaker.State) bool {
	t.Helper()
	return value(t, r.guard.metrics.state[s]) == 1
}

func (r *rig) moves(t *testing.T, to gobreaker.State) int {
	t.Helper()
	return int(value(t, r.guard.metrics.transitions[to]))
}

// quick makes a breaker that a test can wait for.
func quick(s *settings) { s.tuning.BreakerFailures, s.tuning.BreakerOpenFor = 3, 50*time.Millisecond }

func TestBreakerOpensInAnOutageAndClosesAfterItAlthoughMostLookUpsMiss(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		server := testserver.StartRedis(t)
		var frozen atomic.Bool
		r := open(t, server.Addr, shorterWhile(&frozen, hurried, func(s *settings) { ways(s); guardOnly(s); quick(s) }))
		r.warm(t)
		known := attempt("alice", "known")
		r.admit(t, known, order.Ours).Ticket.Finish(t.Context(), created())
		// Nine of ten ask for a key that nobody has, which Redis answers with nil.
		n := 0
		ask := func() order.Advice {
			a := known
			if n++; n%10 != 0 {
				a = attempt("alice", order.Key(fmt.Sprint("k", n)))
			}
			adm := r.Admit(t.Context(), a)
			adm.Ticket.Finish(t.Context(), order.End{})
			return adm.Advice
		}
		for range 100 {
			require.NotEqual(t, order.Bypassed, ask())
		}
		require.True(t, r.stateIs(t, gobreaker.StateClosed))
		require.Zero(t, r.moves(t, gobreaker.StateOpen))

		server.Stop()
		frozen.Store(true)
		require.Eventually(t, func() bool { ask(); return r.bypassed(t, reasonBreaker) > 0 }, hung, time.Millisecond)
		answered := 0
		require.Eventually(t, func() bool { // through several probes that fail
			if ask() != order.Bypassed {
				answered++
			}
			return r.moves(t, gobreaker.StateOpen) > 3
		}, hung, time.Millisecond)
		require.Zero(t, answered)
		require.ErrorContains(t, r.Health(t.Context()), "redis")
		frozen.Store(false)
		server.Cont()
		require.Eventually(t, func() bool { ask(); return r.stateIs(t, gobreaker.StateClosed) }, hung, time.Millisecond)
		for range 20 {
			require.NotEqual(t, order.Bypassed, ask())
		}
		require.NoError(t, r.Health(t.Context()))
		require.Equal(t, 1, r.log.lines("left alone"), "an outage is logged once")
		require.Equal(t, 1, r.log.lines("answers again"))
	})
}

func TestBreakerDoesNotOpenByMissesDuplicatesOrCallersWhoLeave(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		server := testserver.StartRedis(t)
		proxy := faultproxy.NewRedis(t, server.Addr)
		r := open(t, proxy.Addr(), func(s *settings) { ways(s); guardOnly(s); quick(s) })
		r.admit(t, attempt("alice", "known"), order.Ours).Ticket.Finish(t.Context(), created())
		for i := range 300 {
			r.admit(t, attempt("alice", order.Key(fmt.Sprint(i))), order.Ours)
			r.admit(t, attempt("alice", "known"), order.Seen)
			r.Peek(t.Context(), "alice", "nobody's")
		}
		// Callers leave while their command is on its way, by a hang-up or a
		// deadline of their own.
		proxy.OnCommand(func(faultproxy.Command) faultproxy.Action { return faultproxy.DelayReply{For: 30 * time.Millisecond} })
		var leavers sync.WaitGroup
		for i := range 100 {
			leavers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
				defer cancel()
				if i%2 == 0 {
					ctx, cancel = context.WithCancel(t.Context())
					time.AfterFunc(5*time.Millisecond, cancel)
				}
				r.Admit(ctx, attempt("bob", order.Key(fmt.Sprint(i))))
			})
		}
		within(t, hung, leavers.Wait)
		require.Positive(t, r.bypassed(t, reasonCancelled))
		require.Zero(t, r.moves(t, gobreaker.StateOpen))
	})
}

func TestTwentyThousandAnswersThatAreNoFailuresDoNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	r := open(t, startMini(t).Addr(), quick)
	name := r.names.name("alice", "k")
	require.NoError(t, r.client.LPush(t.Context(), name, "x").Err())
	require.NoError(t, r.client.Expire(t.Context(), name, time.Minute).Err())
	wrongType := r.client.Get(t.Context(), name).Err()
	require.Equal(t, reasonWrongType, reasonOf(wrongType))
	gone, leave := context.WithCancel(t.Context())
	leave()
	openFor := r.o.Tuning().BreakerOpenFor
	for range 20_000 {
		for _, answer := range []error{redis.Nil, wrongType} {
			require.ErrorIs(t, r.guard.breaker.run(openFor, func() error { return answer }), answer)
		}
		tuned := r.o.Tuning()
		require.ErrorIs(t, r.guard.do(gone, &tuned, r.guard.metrics.admit, gone.Err), errCallerLeft)
	}
	require.Zero(t, r.moves(t, gobreaker.StateOpen))
}

func TestProbesThatHangDoNotKeepTheBreakerFromClosing(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		proxy := faultproxy.NewRedis(t, testserver.Redis(t).Addr)
		r := open(t, proxy.Addr(), withOpTimeout(hurried, func(s *settings) { ways(s); guardOnly(s); quick(s) }))
		user, n := somebody(t), 0
		ask := func() order.Advice {
			n++
			adm := r.Admit(t.Context(), attempt(user, order.Key(fmt.Sprint(n))))
			adm.Ticket.Finish(t.Context(), released())
			return adm.Advice
		}
		proxy.BlackHole()
		require.Eventually(t, func() bool { ask(); return r.moves(t, gobreaker.StateOpen) > 2 }, hung, time.Millisecond, "two probes have hung")
		proxy.Pass()
		require.Eventually(t, func() bool { return ask() == order.Ours && r.stateIs(t, gobreaker.StateClosed) }, hung, time.Millisecond)
	})
}

func TestOnlyOneProbesAHalfOpenBreakerAndNobodyWaitsForIt(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	proxy := faultproxy.NewRedis(t, server.Addr)
	r := open(t, proxy.Addr(), func(s *settings) { guardOnly(s); quick(s); s.options.Pipelining = false })
	proxy.OnCommand(func(faultproxy.Command) faultproxy.Action { return faultproxy.AnswerError{Message: "LOADING"} })
	for i := range 3 {
		r.admit(t, attempt("alice", order.Key(fmt.Sprint("open", i))), order.Bypassed)
	}
	require.True(t, r.stateIs(t, gobreaker.StateOpen))

	// The probe hangs.
	probing, until := make(chan struct{}, 200), make(chan struct{})
	proxy.OnCommand(func(c faultproxy.Command) faultproxy.Action {
		if c.Name != "SET" {
			return faultproxy.Pass
		}
		probing <- struct{}{}
		return faultproxy.DelayForward{Until: until}
	})
	probe := make(chan order.Admission, 1)
	require.Eventually(t, func() bool { return r.guard.breaker.current.Load().State() == gobreaker.StateHalfOpen }, hung, time.Millisecond)
	go func() { probe <- r.Admit(t.Context(), attempt("alice", "probe")) }()
	<-probing
	var bypassed atomic.Int32
	var others sync.WaitGroup
	for i := range 200 {
		others.Go(func() {
			adm := r.Admit(t.Context(), attempt("alice", order.Key(fmt.Sprint(i))))
			if adm.Advice == order.Bypassed {
				bypassed.Add(1)
			}
			adm.Ticket.Finish(t.Context(), created())
		})
	}
	within(t, hung, others.Wait)
	require.EqualValues(t, 200, bypassed.Load())
	require.Empty(t, probing)
	close(until)
	adm := <-probe
	require.Equal(t, order.Ours, adm.Advice)
	require.True(t, r.stateIs(t, gobreaker.StateClosed))
	adm.Ticket.Finish(t.Context(), released())
}

func TestReadingDoesNotCloseTheBreaker(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction")
	r := open(t, server.Addr, func(s *settings) { guardOnly(s); quick(s) })
	for i := range 3 {
		require.NoError(t, r.Health(t.Context()))
		r.admit(t, attempt("alice", order.Key(fmt.Sprint(i))), order.Bypassed).Ticket.Finish(t.Context(), released())
	}
	require.True(t, r.stateIs(t, gobreaker.StateOpen))
	require.ErrorContains(t, r.Health(t.Context()), "OOM")
	healthy := false
	require.Eventually(t, func() bool {
		healthy = healthy || r.Health(t.Context()) == nil
		return healthy || r.moves(t, gobreaker.StateOpen) > 2
	}, hung, time.Millisecond)
	require.False(t, healthy, "no ping decides while it is half-open")
	require.Zero(t, r.moves(t, gobreaker.StateClosed))
}

func TestHealthClosesTheBreakerOfAGatewayWithoutTraffic(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		server := testserver.StartRedis(t)
		r := open(t, server.Addr, withOpTimeout(hurried, func(s *settings) { ways(s); guardOnly(s); quick(s) }))
		server.Stop()
		require.Eventually(t, func() bool {
			r.Admit(t.Context(), attempt("alice", "k")).Ticket.Finish(t.Context(), released())
			return r.stateIs(t, gobreaker.StateOpen)
		}, hung, time.Millisecond)
		require.Equal(t, []order.Glimpse{{Layer: order.LayerRedis, Unavailable: true}}, r.Peek(t.Context(), "alice", "k"))
		server.Cont()
		require.Eventually(t, func() bool { return r.Health(t.Context()) == nil && r.stateIs(t, gobreaker.StateClosed) }, hung, time.Millisecond)
	})
}

func TestBreakerIsTunedWhileItRuns(t *testing.T) {
	t.Parallel()
	mini := startMini(t)
	var failures, openFor atomic.Int64
	failures.Store(4)
	openFor.Store(int64(time.Hour))
	r := open(t, mini.Addr(), func(s *settings) {
		guardOnly(s)
		s.options.Tuning = func() Tuning {
			t := s.tuning
			t.BreakerFailures, t.BreakerOpenFor = int(failures.Load()), time.Duration(openFor.Load())
			return t
		}
	})
	fail := func(n int) {
		for range n {
			r.admit(t, attempt("alice", "k"), order.Bypassed)
		}
	}
	mini.SetError("LOADING")
	fail(3)
	require.True(t, r.stateIs(t, gobreaker.StateClosed))
	fail(1)
	require.True(t, r.stateIs(t, gobreaker.StateOpen))

	mini.SetError("")
	fail(1)
	require.ErrorContains(t, r.Health(t.Context()), "left alone", "it is not asked, for it would answer")
	openFor.Store(int64(time.Minute)) // who changes the time wants it tried again
	r.admit(t, attempt("alice", "k"), order.Ours)
	require.True(t, r.stateIs(t, gobreaker.StateClosed))
	failures.Store(2)
	mini.SetError("LOADING")
	fail(2)
	require.True(t, r.stateIs(t, gobreaker.StateOpen))
}

// The settings change while a probe is under way that fails: what was told last is
// the state that the breaker is in.
func TestAChangeOfSettingsDuringAProbeIsToldInOrder(t *testing.T) {
	t.Parallel()
	m, err := newMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	log := &logbook{}
	tuning := DefaultTuning()
	tuning.BreakerFailures, tuning.BreakerOpenFor = 1, 1
	b := newBreaker(func() Tuning { return tuning }, m, slog.New(slog.NewTextHandler(log, nil)))
	away := func() error { return redis.ErrPoolTimeout }
	require.Error(t, b.run(1, away))
	require.Eventually(t, func() bool { return b.current.Load().State() == gobreaker.StateHalfOpen }, hung, time.Millisecond)

	probing, fail, failed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	state := ""
	b.moved = func(_, to, _ string) {
		state = to
		if to != gobreaker.StateClosed.String() {
			return
		}
		close(fail)
		for range 1000 { // the probe comes to its end in the middle of the change
			runtime.Gosched()
		}
	}
	go func() {
		defer close(failed)
		_ = b.run(1, func() error { close(probing); <-fail; return away() })
	}()
	<-probing
	require.NoError(t, b.run(time.Hour, func() error { return nil }))
	<-failed
	require.Equal(t, "closed", state)
	require.Equal(t, gobreaker.StateClosed, b.current.Load().State())
	require.InDelta(t, 1, value(t, m.state[gobreaker.StateClosed]), 0)
	require.InDelta(t, 1, value(t, m.transitions[gobreaker.StateClosed]), 0)
	require.Equal(t, 1, log.lines("tried again"))
}

func TestReasonsOfErrors(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]reason{
		gobreaker.ErrOpenState:                                reasonBreaker,
		gobreaker.ErrTooManyRequests:                          reasonBreaker,
		context.DeadlineExceeded:                              reasonTimeout,
		redis.ErrPoolTimeout:                                  reasonTimeout,
		fmt.Errorf("%w: %w", errCallerLeft, context.Canceled): reasonCancelled,
		redis.ErrClosed:                                       reasonError,
	} {
		require.Equal(t, want, reasonOf(err), err)
	}
	require.True(t, isAnswer(nil))
	require.True(t, isAnswer(redis.Nil))
	require.False(t, isAnswer(redis.ErrClosed))
	require.Len(t, reasons(), 14)
}

// An operation that went well is asked what came of it several times.
func TestAnAnswerIsToldWithoutAnAllocation(t *testing.T) { //nolint:paralleltest // allocations are counted for the whole process
	ctx := t.Context()
	for _, answer := range []error{nil, redis.Nil} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if saysNothing(answer) || !isAnswer(answer) {
				t.Error("it is an answer")
			}
		}))
	}
	m, err := newMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	miss := func() error { return redis.Nil }
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = timed(ctx, time.Second, m.admit, miss) }))
}
