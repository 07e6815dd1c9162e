package cache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// first lets a hook act on the first command of a name only.
func first(name string, action faultproxy.Action) func(faultproxy.Command) faultproxy.Action {
	var once sync.Once
	return func(c faultproxy.Command) (a faultproxy.Action) {
		a = faultproxy.Pass
		if c.Name == name {
			once.Do(func() { a = action })
		}
		return a
	}
}

func (r *rig) neverSentTwice(t *testing.T, proxy *faultproxy.RedisProxy) {
	t.Helper()
	require.Equal(t, 1, proxy.Seen("SET"), "the client must not resend")
}

func TestReplyLostAfterSetNeitherBlocksTheKeyNorIsResent(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]faultproxy.Action{"cut": faultproxy.Swallow, "silent": faultproxy.SwallowSilently} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyWay(t, func(t *testing.T, ways func(*settings)) {
				proxy := faultproxy.NewRedis(t, testserver.Redis(t).Addr)
				r := open(t, proxy.Addr(), withOpTimeout(reached, ways))
				require.Eventually(t, func() bool { return r.Health(t.Context()) == nil }, hung, time.Millisecond, "connected")
				user := somebody(t)
				proxy.OnCommand(first("SET", action))
				var adm order.Admission
				within(t, hung, func() { adm = r.Admit(t.Context(), attempt(user, "k")) })
				require.Equal(t, order.Bypassed, adm.Advice)
				r.neverSentTwice(t, proxy)
				require.True(t, r.has(t, user, "k"), "the command was carried out")
				adm.Ticket.Finish(t.Context(), released())
				require.False(t, r.has(t, user, "k"), "its owner finds it by its token")
			})
		})
	}
}

func TestMarkOfALostReplyIsRecognisedAsOurs(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.NewRedis(t, testserver.Redis(t).Addr)
	r := open(t, proxy.Addr(), nil)
	user := somebody(t)
	// What a middlebox does that sends a command again whose reply it lost.
	direct := testserver.Redis(t).Client(t)
	var resent atomic.Int32
	proxy.OnCommand(func(c faultproxy.Command) faultproxy.Action {
		if c.Name == "SET" && strings.EqualFold(c.Args[2], "nx") {
			resent.Add(1)
			if err := direct.Set(context.Background(), c.Args[0], c.Args[1], time.Minute).Err(); err != nil {
				t.Error(err)
			}
		}
		return faultproxy.Pass
	})
	adm := r.admit(t, attempt(user, "k"), order.Ours)
	require.Positive(t, resent.Load(), "it had been carried out before")
	adm.Ticket.Finish(t.Context(), released())
	require.False(t, r.has(t, user, "k"))
}

func TestRequestAppliedAfterItsTimeoutIsClearedByTheEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]order.End{"receipt": created(), "released": released()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyWay(t, func(t *testing.T, ways func(*settings)) {
				server := testserver.StartRedis(t)
				var frozen atomic.Bool
				r := open(t, server.Addr, shorterWhile(&frozen, reached, func(s *settings) { ways(s); s.tuning.BreakerFailures = 100 }))
				r.warm(t)
				server.Stop()
				frozen.Store(true)
				adm := r.admit(t, attempt("alice", "k"), order.Bypassed)
				require.InDelta(t, 1, r.bypassed(t, reasonTimeout), 0)
				frozen.Store(false)
				server.Cont()
				require.Eventually(t, func() bool { return r.Health(t.Context()) == nil }, hung, 10*time.Millisecond)
				require.Eventually(t, func() bool { return r.has(t, "alice", "k") }, hung, 10*time.Millisecond, "the late packet arrives")
				adm.Ticket.Finish(t.Context(), end)
				if name == "receipt" {
					require.EqualValues(t, kindReceipt, r.entry(t, "alice", "k").kind)
				} else {
					require.False(t, r.has(t, "alice", "k"))
				}
			})
		})
	}
}

// slow is far above the time-outs of a hurried filter and below what three of its
// operations take that wait for the three seconds of the client's default.
const slow = 8 * time.Second

func TestFrozenRedisHoldsNobodyBeyondTheTimeout(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		server := testserver.StartRedis(t)
		// No breaker: each and every call meets the frozen server.
		r := open(t, server.Addr, withOpTimeout(hurried, func(s *settings) { ways(s); s.tuning.BreakerFailures = 1 << 20 }))
		r.warm(t)
		server.Stop()
		defer server.Cont()
		for round := range 3 {
			var callers sync.WaitGroup
			for i := range 60 {
				callers.Go(func() {
					started := time.Now()
					a := attempt("alice", order.Key(fmt.Sprint("k", round, "-", i)))
					adm := r.Admit(t.Context(), a)
					if adm.Advice != order.Bypassed {
						t.Errorf("advice %d", adm.Advice)
					}
					if i%2 == 0 {
						adm.Ticket.Finish(t.Context(), created())
					} else {
						adm.Ticket.Finish(t.Context(), released())
					}
					r.Peek(t.Context(), "alice", a.Key)
					if took := time.Since(started); took > slow {
						t.Errorf("held for %v", took)
					}
				})
			}
			within(t, hung, callers.Wait)
		}
		require.Error(t, r.Health(t.Context()))
	})
}

func TestColdStartOnAFrozenOrSilentRedisIsBounded(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		proxy := faultproxy.NewRedis(t, testserver.Redis(t).Addr)
		proxy.BlackHole()
		r := open(t, proxy.Addr(), withOpTimeout(hurried, ways))
		within(t, slow, func() {
			r.admit(t, attempt("alice", "k"), order.Bypassed).Ticket.Finish(t.Context(), created())
			r.Peek(t.Context(), "alice", "k")
		})
	})
}

func TestRefusedConnectionIsBypassedAtOnce(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		server := testserver.StartRedis(t)
		r := open(t, server.Addr, ways)
		r.admit(t, attempt("alice", "k"), order.Ours).Ticket.Finish(t.Context(), created())
		server.Kill()
		var adm order.Admission
		within(t, hung, func() { adm = r.Admit(t.Context(), attempt("alice", "k2")) })
		require.Equal(t, order.Bypassed, adm.Advice)
		adm.Ticket.Finish(t.Context(), created())
		require.Equal(t, order.LayerProcess, r.admit(t, attempt("alice", "k2"), order.Seen).Layer)
		require.Positive(t, r.bypassed(t, reasonUnreachable))
		require.Error(t, r.Health(t.Context()))

		server.Restart() // without its data
		require.Eventually(t, func() bool { return r.Health(t.Context()) == nil }, hung, 10*time.Millisecond)
		require.Eventually(t, func() bool {
			adm := r.Admit(t.Context(), attempt("alice", "k3"))
			adm.Ticket.Finish(t.Context(), released())
			return adm.Advice == order.Ours
		}, hung, 10*time.Millisecond)
	})
}

func TestFlushCostsOneQuestionToTheLedger(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	r := open(t, server.Addr, guardOnly)
	adm := r.admit(t, attempt("alice", "k"), order.Ours)
	require.NoError(t, r.client.FlushAll(t.Context()).Err())
	second := r.admit(t, attempt("alice", "k"), order.Ours) // two owners: the ledger knows better
	second.Ticket.Finish(t.Context(), created())
	adm.Ticket.Finish(t.Context(), released())
	r.admit(t, attempt("alice", "k"), order.Seen).Ticket.Finish(t.Context(), order.End{})
}

func TestFullRedisIsBypassedAndItsMarksAreReleased(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, "--maxmemory-policy", "noeviction")
	r := open(t, server.Addr, func(s *settings) { guardOnly(s); s.tuning.BreakerFailures = 100 })
	adm := r.admit(t, attempt("alice", "k"), order.Ours)
	require.NoError(t, r.client.ConfigSet(t.Context(), "maxmemory", "1").Err())

	refused := r.admit(t, attempt("alice", "k2"), order.Bypassed)
	require.InDelta(t, 1, r.bypassed(t, reasonMemory), 0)
	refused.Ticket.Finish(t.Context(), released())
	adm.Ticket.Finish(t.Context(), created())
	require.InDelta(t, 1, r.unsettled(t, reasonMemory), 0)
	require.False(t, r.has(t, "alice", "k"), "a mark that nobody can overwrite is taken away")

	require.NoError(t, r.client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	r.admit(t, attempt("alice", "k"), order.Ours).Ticket.Finish(t.Context(), created())
}

func TestReadOnlyReplicaIsBypassed(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		master, replica := testserver.StartRedis(t), testserver.StartRedis(t)
		host, port, _ := strings.Cut(master.Addr, ":")
		require.NoError(t, replica.Client(t).ReplicaOf(t.Context(), host, port).Err())
		r := open(t, replica.Addr, ways)
		r.admit(t, attempt("alice", "k"), order.Bypassed).Ticket.Finish(t.Context(), created())
		require.InDelta(t, 1, r.bypassed(t, reasonReadOnly), 0)
		require.InDelta(t, 1, r.unsettled(t, reasonReadOnly), 0)
	})
}

func TestErrorsOfTheServerAreBypassed(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.NewRedis(t, testserver.Redis(t).Addr)
	r := open(t, proxy.Addr(), func(s *settings) { s.tuning.BreakerFailures = 100 })
	for i, message := range []string{
		"LOADING Redis is loading the dataset in memory", "CLUSTERDOWN Hash slot not served",
		"NOAUTH Authentication required.", "MASTERDOWN Link with MASTER is down", "TRYAGAIN Multiple keys", "ERR anything",
	} {
		proxy.OnCommand(first("SET", faultproxy.AnswerError{Message: message}))
		seen := proxy.Seen("SET")
		adm := r.admit(t, attempt(t.Name(), order.Key(fmt.Sprint(i))), order.Bypassed)
		require.Equal(t, seen+1, proxy.Seen("SET"), message)
		adm.Ticket.Finish(t.Context(), released())
		require.Zero(t, proxy.Seen("EVAL"), "nothing was marked, so nothing is released")
	}
	require.InDelta(t, 6, r.bypassed(t, reasonError), 0)
}

func TestQueueOfAStreamIsBounded(t *testing.T) {
	t.Parallel()
	for _, full := range []error{errQueueFull, redis.ErrAutoPipelineQueueFull} {
		require.Equal(t, reasonOverloaded, reasonOf(fmt.Errorf("send: %w", full)))
		require.False(t, mayHaveRun(full))
		require.True(t, saysNothing(full))
	}
	r := open(t, cluster(t).Addr, clustered(func(*settings) {}))
	require.Equal(t, maxQueued, r.guard.pipe.(*shared).many.(stream).engine.Config().MaxQueuedCommands)
}
