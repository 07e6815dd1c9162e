//go:build linux && ha

package hatest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/store"
)

// node is one node of a Cluster.
type node struct {
	server *testserver.RedisServer
	client *redis.Client
	id     string
	port   string
}

const slots = 16384

// startCluster starts a Cluster of three primaries, the first of which has a
// replica, and waits until all agree on that.
func startCluster(t *testing.T) (primaries []*node, replica *node) {
	t.Helper()
	ctx := t.Context()
	var all []*node
	for range 4 {
		bus := reserve(t)
		server := testserver.StartRedis(t, "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(bus.Number()),
			"--cluster-node-timeout", "1500", "--repl-diskless-sync-delay", "0")
		n := &node{server: server, client: server.Client(t)}
		n.id = n.client.Do(ctx, "CLUSTER", "MYID").String()
		n.id = strings.TrimSpace(n.id[strings.LastIndexByte(n.id, ' ')+1:])
		n.port = server.Addr[strings.LastIndexByte(server.Addr, ':')+1:]
		all = append(all, n)
		require.NoError(t, all[0].client.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", n.port, fmt.Sprint(bus.Number())).Err())
	}
	primaries, replica = all[:3], all[3]
	for i, n := range primaries {
		require.NoError(t, n.client.ClusterAddSlotsRange(ctx, i*slots/3, (i+1)*slots/3-1).Err())
	}
	await(t, "the replica follows", func(ctx context.Context) error {
		return replica.client.ClusterReplicate(ctx, primaries[0].id).Err()
	})
	for _, n := range all {
		await(t, "the Cluster is whole", func(ctx context.Context) error {
			info, err := n.client.ClusterInfo(ctx).Result()
			if err == nil && (!strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:4")) {
				err = errors.New(info)
			}
			return err
		})
	}
	await(t, "the replica is in step", func(ctx context.Context) error {
		if state := replica.client.InfoMap(ctx, "replication").Item("Replication", "master_link_status"); state != "up" {
			return errors.New("the link is " + state)
		}
		return nil
	})
	return primaries, replica
}

// moveSlot moves a slot and its entries, in the way that redis-cli does, and
// returns how many entries went with it.
func moveSlot(t *testing.T, slot int, from, to *node, others ...*node) (moved int) {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, to.client.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", from.id).Err())
	require.NoError(t, from.client.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.id).Err())
	for {
		keys, err := from.client.ClusterGetKeysInSlot(ctx, slot, 10).Result()
		require.NoError(t, err)
		if len(keys) == 0 {
			break
		}
		for _, key := range keys {
			require.NoError(t, from.client.Migrate(ctx, "127.0.0.1", to.port, key, 0, 5*time.Second).Err())
			moved++
		}
	}
	for _, n := range append([]*node{to, from}, others...) {
		require.NoError(t, n.client.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", to.id).Err())
	}
	return moved
}

// busySlots are the slots of a node that have entries.
func busySlots(t *testing.T, n *node) (busy []int) {
	t.Helper()
	seen := map[int]bool{}
	for scan := n.client.Scan(t.Context(), 0, "*", 500).Iterator(); scan.Next(t.Context()); {
		slot, err := n.client.ClusterKeySlot(t.Context(), scan.Val()).Result()
		require.NoError(t, err)
		if !seen[int(slot)] {
			seen[int(slot)] = true
			busy = append(busy, int(slot))
		}
	}
	return busy
}

// A Cluster moves slots with the entries of customers in them, and then loses
// the primary of a third of them.
func TestRedisClusterMovesSlotsAndLosesAPrimary(t *testing.T) { //nolint:paralleltest // a run has the machine to itself
	dsn := testserver.MySQL(t).Database(t)
	require.NoError(t, store.Migrate(t.Context(), store.Options{DSN: dsn}))
	primaries, replica := startCluster(t)
	g := startGateway(t, settings(dsn, map[string]string{
		"REDIS__ADDRS":   strings.Join([]string{primaries[0].server.Addr, primaries[1].server.Addr, primaries[2].server.Addr}, ","),
		"REDIS__CLUSTER": "true",
	}))
	c := send(t, g)
	c.awaitMore(60)

	slotsMoved, entries := 0, 0
	for _, slot := range busySlots(t, primaries[1]) {
		entries += moveSlot(t, slot, primaries[1], primaries[2], primaries[0])
		slotsMoved++
	}
	require.Positive(t, entries)
	c.awaitMore(40)
	afterMove, err := g.metric(t.Context(), "oncegate_filter_bypassed_total{")
	require.NoError(t, err)

	killed := time.Now()
	primaries[0].server.Kill()
	c.awaitMore(40)
	await(t, "the replica takes over", func(ctx context.Context) error {
		if role := replica.client.InfoMap(ctx, "replication").Item("Replication", "role"); role != "master" {
			return errors.New("it is a " + role)
		}
		return nil
	})
	tookOver := time.Since(killed)
	back := awaitFilter(t, g, killed)
	c.awaitMore(40)
	bypassed, err := g.metric(t.Context(), "oncegate_filter_bypassed_total{")
	require.NoError(t, err)

	j := c.judge(c.finish(), dsn)
	t.Logf("%d slots with %d entries moved, %.0f requests bypassed the filter by then; primary killed: replica took over after %v, filter whole after %v, %.0f requests bypassed",
		slotsMoved, entries, afterMove, tookOver.Round(10*time.Millisecond), back.Round(10*time.Millisecond), bypassed-afterMove)
	c.requireClean(j)
	audited(t, dsn)
}

// awaitFilter waits until no request has bypassed the filter for a while, and
// returns when that began, after since.
func awaitFilter(t *testing.T, g *gateway, since time.Time) time.Duration {
	t.Helper()
	const calm = 2 * time.Second // some forty customers
	last, at := -1.0, time.Time{}
	await(t, "the filter is asked again", func(ctx context.Context) error {
		n, err := g.metric(ctx, "oncegate_filter_bypassed_total{")
		if err != nil {
			return err
		}
		if n != last {
			last, at = n, time.Now()
		}
		if time.Since(at) < calm {
			return fmt.Errorf("%.0f requests have bypassed it, the last %v ago", n, time.Since(at))
		}
		return nil
	})
	return at.Sub(since)
}
