package cache

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/loopback"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// startSentinel starts a Sentinel, whose word alone decides, over a master that
// has a replica, and waits until it knows both.
func startSentinel(t *testing.T, master *testserver.RedisServer) (addr string) {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		testserver.Demand(t, fmt.Errorf("a Sentinel: redis-server: %w", testserver.ErrMissing))
	}
	host, masterPort, err := net.SplitHostPort(master.Addr)
	require.NoError(t, err)
	port, err := loopback.Reserve()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, port.Release()) })
	dir := t.TempDir()
	conf := filepath.Join(dir, "sentinel.conf")
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, `port %d
bind 127.0.0.1
dir %s
sentinel monitor orders %s %s 1
sentinel down-after-milliseconds orders 500
sentinel failover-timeout orders 3000
`, port.Number(), dir, host, masterPort), 0o600))

	cmd := exec.Command(binary, conf, "--sentinel")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	client := redis.NewSentinelClient(&redis.Options{Addr: port.Addr()})
	defer func() { require.NoError(t, client.Close()) }()
	require.Eventually(t, func() bool {
		replicas, err := client.Replicas(t.Context(), "orders").Result()
		return err == nil && len(replicas) == 1
	}, hung, 20*time.Millisecond)
	return port.Addr()
}

// startReplica starts a Redis that follows another, and waits until it does.
func startReplica(t *testing.T, master *testserver.RedisServer) {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Addr)
	require.NoError(t, err)
	client := testserver.StartRedis(t, "--replicaof", host, port, "--repl-diskless-sync-delay", "0").Client(t)
	require.Eventually(t, func() bool {
		return client.InfoMap(t.Context(), "replication").Item("Replication", "master_link_status") == "up"
	}, hung, 20*time.Millisecond)
}

// The client's error for a master that no Sentinel knows wraps the value that
// stands for a key that nobody has.
func TestUnknownMasterIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		master := testserver.StartRedis(t, "--repl-diskless-sync-delay", "0")
		startReplica(t, master)
		r := open(t, startSentinel(t, master), withOpTimeout(time.Second, func(s *settings) {
			ways(s)
			guardOnly(s)
			quick(s)
			s.client.MasterName = "payments"
		}))
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				adm := r.Admit(t.Context(), attempt(fmt.Sprint("user", i), "k"))
				if adm.Advice != order.Bypassed {
					t.Errorf("advice %d", adm.Advice)
				}
				adm.Ticket.Finish(t.Context(), released())
			})
		}
		within(t, hung, callers.Wait)
		require.InDelta(t, 20, r.bypassed(t, reasonError)+r.bypassed(t, reasonUnreachable)+r.bypassed(t, reasonTimeout)+r.bypassed(t, reasonBreaker), 0)
	})
}

// Nobody who submits while a real Sentinel makes the replica the master meets
// anything but a bypass, and the new master is found without a restart.
func TestFailoverCostsBypassesOnly(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		master := testserver.StartRedis(t, "--repl-diskless-sync-delay", "0")
		startReplica(t, master)
		r := open(t, startSentinel(t, master), withOpTimeout(time.Second, func(s *settings) {
			ways(s)
			guardOnly(s)
			s.client.MasterName = "orders"
			s.tuning.BreakerOpenFor = hurried
		}))
		var ours, bypassed atomic.Int64
		stop := make(chan struct{})
		var trickle sync.WaitGroup
		for caller := range 3 {
			trickle.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					started := time.Now()
					adm := r.Admit(t.Context(), attempt(fmt.Sprint("user", caller), order.Key(fmt.Sprint(i))))
					adm.Ticket.Finish(t.Context(), created())
					switch adm.Advice {
					case order.Ours:
						ours.Add(1)
					case order.Bypassed:
						bypassed.Add(1)
					default:
						t.Errorf("a new key was answered with advice %d", adm.Advice)
					}
					if took := time.Since(started); took > slow+2*time.Second { // two operations, each of up to a second
						t.Errorf("held for %v", took)
					}
				}
			})
		}
		require.Eventually(t, func() bool { return ours.Load() > 20 }, hung, 10*time.Millisecond)
		master.Kill()
		require.Eventually(t, func() bool { return bypassed.Load() > 0 }, hung, 10*time.Millisecond)
		before := ours.Load()
		require.Eventually(t, func() bool { return ours.Load() > before+20 }, time.Minute, 10*time.Millisecond, "the new master")
		close(stop)
		within(t, hung, trickle.Wait)
		require.Eventually(t, func() bool { return r.Health(t.Context()) == nil }, hung, 10*time.Millisecond)
	})
}
