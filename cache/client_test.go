package cache

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

func TestClientOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	good := ClientOptions{Addrs: []string{"127.0.0.1:1"}, OpTimeout: time.Second}
	for text, change := range map[string]func(*ClientOptions){
		"no Redis address":   func(o *ClientOptions) { o.Addrs = nil },
		"must be above zero": func(o *ClientOptions) { o.OpTimeout = 0 },
		"either behind":      func(o *ClientOptions) { o.Cluster, o.MasterName = true, "m" },
		"only database 0":    func(o *ClientOptions) { o.Cluster, o.DB = true, 1 },
		"several Redis":      func(o *ClientOptions) { o.Addrs = []string{"a:1", "b:1"} },
	} {
		o := good
		change(&o)
		_, err := OpenClient(o)
		require.ErrorContains(t, err, text)
	}
}

func TestClientUsesUserPasswordAndDatabase(t *testing.T) {
	t.Parallel()
	mini := startMini(t)
	mini.RequireUserAuth("gateway", "secret")
	r := open(t, mini.Addr(), func(s *settings) { s.client.Username, s.client.Password, s.client.DB = "gateway", "secret", 3 })
	r.admit(t, attempt("alice", "k"), order.Ours)
	require.Len(t, mini.DB(3).Keys(), 1)

	stranger := open(t, mini.Addr(), func(s *settings) { s.client.Username, s.client.Password = "gateway", "guess" })
	stranger.admit(t, attempt("alice", "k"), order.Bypassed)
}

// A Redis that refuses the connection has answered nobody, however many ask it at
// once: all are bypassed, and it is left alone.
func TestWrongPasswordIsNobodysAnswer(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		mini := startMini(t)
		mini.RequireAuth("secret")
		r := open(t, mini.Addr(), func(s *settings) { ways(s); guardOnly(s); quick(s); s.client.Password = "guess" })
		var callers sync.WaitGroup
		for i := range 64 {
			callers.Go(func() {
				for k := range 5 {
					adm := r.Admit(t.Context(), attempt(fmt.Sprint("user", i), order.Key(fmt.Sprint(k))))
					if adm.Advice != order.Bypassed {
						t.Errorf("advice %d", adm.Advice)
					}
					adm.Ticket.Finish(t.Context(), created())
				}
			})
		}
		within(t, hung, callers.Wait)
		require.Zero(t, r.bypassed(t, reasonUnreadable))
		require.Positive(t, r.bypassed(t, reasonError))
		require.Positive(t, r.moves(t, gobreaker.StateOpen))
		require.Positive(t, r.unsettled(t, reasonError)+r.unsettled(t, reasonBreaker), "no receipt was stored")
	})
}

// cluster starts a Cluster of one node that has all slots.
func cluster(t *testing.T) *testserver.RedisServer {
	t.Helper()
	s := testserver.StartRedisNode(t)
	c := s.Client(t)
	require.NoError(t, c.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	require.Eventually(t, func() bool { return c.Set(t.Context(), "ready", 1, 0).Err() == nil }, hung, 10*time.Millisecond)
	return s
}

func clustered(ways func(*settings)) func(*settings) {
	return func(s *settings) { ways(s); s.client.Cluster = true }
}

func TestClusterIsGuarded(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		r := open(t, cluster(t).Addr, clustered(func(s *settings) { ways(s); guardOnly(s) }))
		var callers sync.WaitGroup
		for i := range 50 {
			callers.Go(func() {
				a := attempt(fmt.Sprint("user", i), "k")
				adm := r.Admit(t.Context(), a)
				if adm.Advice != order.Ours {
					t.Errorf("advice %d", adm.Advice)
				}
				if i%2 == 0 {
					adm.Ticket.Finish(t.Context(), created())
				} else {
					adm.Ticket.Finish(t.Context(), released())
				}
			})
		}
		within(t, hung, callers.Wait)
		for i := range 50 {
			a := attempt(fmt.Sprint("user", i), "k")
			if i%2 == 0 {
				require.Len(t, r.Peek(t.Context(), a.UserID, a.Key), 1)
				r.admit(t, a, order.Seen)
			} else {
				r.admit(t, a, order.Ours)
			}
		}
		require.NoError(t, r.Health(t.Context()))
	})
}

// A Cluster client resends by itself what it takes for a failure of the
// network, whatever its retries are set to.
func TestClusterClientNeverSendsTwice(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		node := cluster(t)
		proxy := faultproxy.NewRedis(t, node.Addr)
		// Through the proxy only: the addresses that the node announces are its own.
		r := open(t, proxy.Addr(), clustered(ways))
		host, port := "127.0.0.1", proxy.Addr()[len("127.0.0.1:"):]
		require.NoError(t, node.Client(t).ConfigSet(t.Context(), "cluster-announce-ip", host).Err())
		require.NoError(t, node.Client(t).ConfigSet(t.Context(), "cluster-announce-port", port).Err())
		proxy.OnCommand(func(c faultproxy.Command) faultproxy.Action {
			if c.Name == "SET" {
				return faultproxy.Swallow
			}
			return faultproxy.Pass
		})
		within(t, hung, func() { r.admit(t, attempt("alice", "k"), order.Bypassed) })
		r.neverSentTwice(t, proxy)
	})
}

func TestClusterThatIsAwayHoldsNobody(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*testserver.RedisServer){
		"frozen": (*testserver.RedisServer).Stop,
		"dead":   (*testserver.RedisServer).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyWay(t, func(t *testing.T, ways func(*settings)) {
				node := cluster(t)
				change := clustered(withOpTimeout(hurried, func(s *settings) { ways(s); s.tuning.BreakerFailures = 1 << 20 }))
				warm, cold := open(t, node.Addr, change), open(t, node.Addr, change)
				warm.warm(t)
				fault(node)
				for _, r := range []*rig{warm, cold} {
					for i := range 3 {
						started := time.Now()
						adm := r.admit(t, attempt("alice", order.Key(fmt.Sprint("k", i))), order.Bypassed)
						adm.Ticket.Finish(t.Context(), created())
						r.Peek(t.Context(), "alice", "k")
						require.Error(t, r.Health(t.Context()))
						require.Less(t, time.Since(started), slow)
					}
				}
				if name == "frozen" {
					node.Cont()
				}
			})
		})
	}
}

// sentinel answers as a Sentinel does whose master is elsewhere.
func sentinel(t *testing.T, master func() *miniredis.Miniredis) string {
	t.Helper()
	s := startMini(t)
	require.NoError(t, s.Server().Register("SENTINEL", func(c *server.Peer, _ string, args []string) {
		switch args[0] {
		case "get-master-addr-by-name":
			c.WriteStrings([]string{master().Host(), master().Port()})
		default: // no other Sentinels, no replicas
			c.WriteLen(0)
		}
	}))
	return s.Addr()
}

func TestMasterIsFoundThroughSentinels(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		one, two := startMini(t), startMini(t)
		var mu sync.Mutex
		master := one
		addr := sentinel(t, func() *miniredis.Miniredis {
			mu.Lock()
			defer mu.Unlock()
			return master
		})
		r := open(t, addr, func(s *settings) { ways(s); guardOnly(s); s.client.MasterName = "orders" })
		r.admit(t, attempt("alice", "k"), order.Ours).Ticket.Finish(t.Context(), created())
		require.Len(t, one.Keys(), 1)

		mu.Lock()
		master = two // a failover to a replica that lacks the key
		mu.Unlock()
		one.Close()
		require.Eventually(t, func() bool { return r.Admit(t.Context(), attempt("alice", "k")).Advice == order.Ours }, hung, 20*time.Millisecond)
		require.Len(t, two.Keys(), 1)
	})
}

func TestCommandsAreMarkedAsNotToBeResent(t *testing.T) {
	t.Parallel()
	var cmd redis.Cmder = command(t.Context(), "get", "k")
	require.True(t, cmd.NoRetry())
}
