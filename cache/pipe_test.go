package cache

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// occupied is a pipe that holds whoever uses it.
type occupied struct {
	arrived chan struct{}
	leave   chan struct{}
}

func (o *occupied) send(context.Context, time.Duration, redis.Cmder) error {
	o.arrived <- struct{}{}
	<-o.leave
	return nil
}

func TestFewCommandsGoAloneAndManyShare(t *testing.T) {
	t.Parallel()
	few := &occupied{make(chan struct{}), make(chan struct{})}
	many := &occupied{make(chan struct{}), make(chan struct{})}
	s := &shared{few: few, many: many}
	var callers sync.WaitGroup
	send := func() { callers.Go(func() { _ = s.send(t.Context(), hung, command(t.Context(), "ping")) }) }
	for range aloneAtOnce {
		send()
		<-few.arrived
	}
	for range 5 {
		send()
		<-many.arrived
	}
	close(many.leave)
	close(few.leave)
	callers.Wait()
	send()
	<-few.arrived // when it is quiet again
	callers.Wait()
	require.Zero(t, s.underWay.Load())
}

func TestManyCallersShareFewConnections(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	r := open(t, server.Addr, func(s *settings) { guardOnly(s); s.client.PoolSize = 100 })
	var callers sync.WaitGroup
	for i := range 200 {
		callers.Go(func() {
			for k := range 20 {
				adm := r.Admit(t.Context(), attempt(fmt.Sprint("user", i), order.Key(fmt.Sprint(k))))
				adm.Ticket.Finish(t.Context(), created())
			}
		})
	}
	within(t, time.Minute, callers.Wait)
	clients := server.Client(t).InfoMap(t.Context(), "stats").Item("Stats", "total_connections_received")
	var n int
	_, err := fmt.Sscan(clients, &n)
	require.NoError(t, err)
	require.Less(t, n, 12, "connections for 200 callers")
	require.Zero(t, r.bypassed(t, reasonTimeout))
}

// A connection that breaks in the middle of a stream takes those with it who
// are on it. None of them hangs, none is sent again, and none leaves a mark
// behind that its end does not find.
func TestCutInTheMiddleOfAStreamIsBypassedAndCleared(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]faultproxy.Action{"before": faultproxy.CutBefore, "after": faultproxy.Swallow} {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, streamed %t", name, streamed), func(t *testing.T) {
				t.Parallel()
				cutInTheMiddle(t, action, streamed)
			})
		}
	}
}

func cutInTheMiddle(t *testing.T, action faultproxy.Action, streamed bool) {
	t.Helper()
	proxy := faultproxy.NewRedis(t, testserver.Redis(t).Addr)
	r := open(t, proxy.Addr(), func(s *settings) {
		guardOnly(s)
		s.options.Prefix = "cut" + rand.Text()
		s.tuning.BreakerFailures = 1 << 20
		s.streamed = streamed
	})
	const callers, each = 64, 20
	var mu sync.Mutex
	sent := map[string]int{}
	n := 0
	proxy.OnCommand(func(c faultproxy.Command) faultproxy.Action {
		if c.Name != "SET" {
			return faultproxy.Pass
		}
		mu.Lock()
		defer mu.Unlock()
		sent[c.Args[1]]++
		if n++; n%97 == 0 {
			return action
		}
		return faultproxy.Pass
	})
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for k := range each {
				a := attempt(fmt.Sprint(t.Name(), i), order.Key(fmt.Sprint(k)))
				adm := r.Admit(t.Context(), a)
				if adm.Advice != order.Ours && adm.Advice != order.Bypassed {
					t.Errorf("a new key was answered with advice %d", adm.Advice)
				}
				adm.Ticket.Finish(t.Context(), released())
			}
		})
	}
	within(t, time.Minute, all.Wait)
	require.Positive(t, r.bypassed(t, reasonUnreachable))
	mu.Lock() // what was cut may come as far as the proxy after its caller has left
	counts := slices.Collect(maps.Values(sent))
	mu.Unlock()
	for _, times := range counts {
		require.Equal(t, 1, times, "each has a token of its own, so a command that is sent twice is seen")
	}
	proxy.OnCommand(nil)
	left := 0
	for i := range callers {
		for k := range each {
			left += len(r.Peek(t.Context(), fmt.Sprint(t.Name(), i), order.Key(fmt.Sprint(k))))
		}
	}
	require.LessOrEqual(t, float64(left), r.unsettled(t, reasonUnreachable), "what was not released is counted, and ages out")
}

// The reply says that the slot is elsewhere: the command was not carried out,
// so it is sent there.
func TestMovedAndAskAreFollowed(t *testing.T) {
	t.Parallel()
	for _, redirection := range []string{"MOVED", "ASK"} {
		t.Run(redirection, func(t *testing.T) {
			t.Parallel()
			everyWay(t, func(t *testing.T, ways func(*settings)) {
				node := cluster(t)
				proxy := behindProxy(t, node)
				r := open(t, proxy.Addr(), clustered(func(s *settings) { ways(s); guardOnly(s) }))
				require.NoError(t, r.Health(t.Context()))
				var mu sync.Mutex
				redirected := 0
				proxy.OnCommand(func(c faultproxy.Command) faultproxy.Action {
					if c.Name != "SET" {
						return faultproxy.Pass
					}
					mu.Lock()
					defer mu.Unlock()
					redirected++
					return faultproxy.AnswerError{Message: fmt.Sprintf("%s 1 %s", redirection, node.Addr)}
				})
				var callers sync.WaitGroup
				for i := range 20 {
					callers.Go(func() {
						adm := r.Admit(t.Context(), attempt(fmt.Sprint("user", i), "k"))
						if adm.Advice != order.Ours {
							t.Errorf("advice %d", adm.Advice)
						}
						adm.Ticket.Finish(t.Context(), created())
					})
				}
				within(t, hung, callers.Wait)
				require.Positive(t, redirected)
				for i := range 20 {
					require.Len(t, r.Peek(t.Context(), fmt.Sprint("user", i), "k"), 1)
				}
			})
		})
	}
}

// behindProxy has a node of a Cluster announce a proxy as its address.
func behindProxy(t *testing.T, node *testserver.RedisServer) *faultproxy.RedisProxy {
	t.Helper()
	proxy := faultproxy.NewRedis(t, node.Addr)
	client := node.Client(t)
	require.NoError(t, client.ConfigSet(t.Context(), "cluster-announce-ip", "127.0.0.1").Err())
	require.NoError(t, client.ConfigSet(t.Context(), "cluster-announce-port", proxy.Addr()[len("127.0.0.1:"):]).Err())
	return proxy
}
