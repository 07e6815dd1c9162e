//go:build linux && ha

package hatest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/store"
)

// follower is the account with which the replica follows the primary. Without
// it the replica stays behind, while the Sentinels still like it.
const follower = "follower"

// startPair starts a Redis and a replica of it, and waits until it follows.
func startPair(t *testing.T) (primary, replica *testserver.RedisServer) {
	t.Helper()
	primary = testserver.StartRedis(t, "--repl-diskless-sync-delay", "0")
	require.NoError(t, primary.Client(t).Do(t.Context(), "ACL", "SETUSER", follower, "on", ">secret", "+psync", "+replconf", "+ping").Err())
	host, port, err := net.SplitHostPort(primary.Addr)
	require.NoError(t, err)
	replica = testserver.StartRedis(t, "--replicaof", host, port, "--masteruser", follower, "--masterauth", "secret")
	client := replica.Client(t)
	await(t, "the replica follows", func(ctx context.Context) error {
		if state := client.InfoMap(ctx, "replication").Item("Replication", "master_link_status"); state != "up" {
			return errors.New("the link is " + state)
		}
		return nil
	})
	return primary, replica
}

// startSentinels starts three Sentinels, of whom two must agree, and waits
// until each knows the replica and the others.
func startSentinels(t *testing.T, primary *testserver.RedisServer) (addrs []string) {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	require.NoError(t, err, "a Sentinel needs a redis-server on the path")
	host, primaryPort, err := net.SplitHostPort(primary.Addr)
	require.NoError(t, err)
	for range 3 {
		port, dir := reserve(t), t.TempDir()
		conf := filepath.Join(dir, "sentinel.conf")
		require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, `port %d
bind 127.0.0.1
dir %s
sentinel monitor orders %s %s 2
sentinel down-after-milliseconds orders 1500
sentinel failover-timeout orders 6000
`, port.Number(), dir, host, primaryPort), 0o600))
		run(t, exec.Command(binary, conf, "--sentinel"))
		addrs = append(addrs, port.Addr())
	}
	for _, addr := range addrs {
		sentinel := redis.NewSentinelClient(&redis.Options{Addr: addr})
		await(t, "a Sentinel knows all", func(ctx context.Context) error {
			master, err := sentinel.Master(ctx, "orders").Result()
			if err == nil && (master["num-slaves"] != "1" || master["num-other-sentinels"] != "2") {
				err = fmt.Errorf("it knows %s replicas and %s others", master["num-slaves"], master["num-other-sentinels"])
			}
			return err
		})
		require.NoError(t, sentinel.Close())
	}
	return addrs
}

// awaitPrimary waits until the Sentinel names another primary than the old one.
func awaitPrimary(t *testing.T, sentinel, old string) {
	t.Helper()
	client := redis.NewSentinelClient(&redis.Options{Addr: sentinel})
	defer func() { require.NoError(t, client.Close()) }()
	await(t, "there is a new primary", func(ctx context.Context) error {
		address, err := client.GetMasterAddrByName(ctx, "orders").Result()
		if err == nil && net.JoinHostPort(address[0], address[1]) == old {
			err = errors.New("it is the old one still")
		}
		return err
	})
}

// The replica that three Sentinels promote lacks the last entries: marks and
// answers that customers have heard of.
func TestRedisSentinelFailsOverWithEntriesLost(t *testing.T) { //nolint:paralleltest // a run has the machine to itself
	dsn := testserver.MySQL(t).Database(t)
	require.NoError(t, store.Migrate(t.Context(), store.Options{DSN: dsn}))
	primary, replica := startPair(t)
	sentinels := startSentinels(t, primary)
	g := startGateway(t, settings(dsn, map[string]string{
		"REDIS__ADDRS":       strings.Join(sentinels, ","),
		"REDIS__MASTER_NAME": "orders",
		"CACHE__LOCAL_TTL":   "0s", // so that replays are asked of Redis
	}))
	c := send(t, g)
	c.awaitMore(60)
	before, err := g.metric(t.Context(), "oncegate_filter_bypassed_total{")
	require.NoError(t, err)

	// The server closes the connections of an account that it removes.
	first, second := primary.Client(t), replica.Client(t)
	require.NoError(t, first.Do(t.Context(), "ACL", "DELUSER", follower).Err())
	c.awaitMore(30)
	had, err := first.DBSize(t.Context()).Result()
	require.NoError(t, err)
	has, err := second.DBSize(t.Context()).Result()
	require.NoError(t, err)
	require.Greater(t, had, has, "entries that only the primary has")
	killed := time.Now()
	primary.Kill()
	awaitPrimary(t, sentinels[0], primary.Addr)
	tookOver := time.Since(killed)
	back := awaitFilter(t, g, killed)
	c.awaitMore(40)
	bypassed, err := g.metric(t.Context(), "oncegate_filter_bypassed_total{")
	require.NoError(t, err)
	size, err := second.DBSize(t.Context()).Result()
	require.NoError(t, err)
	require.Greater(t, size, has, "the gateway uses the new primary")

	j := c.judge(c.finish(), dsn)
	t.Logf("%d of %d entries lost; primary killed: replica promoted after %v, filter whole after %v, %.0f requests bypassed",
		had-has, had, tookOver.Round(10*time.Millisecond), back.Round(10*time.Millisecond), bypassed-before)
	c.requireClean(j)
	audited(t, dsn)
}
