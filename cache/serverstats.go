package cache

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// silentFor is how long a server that does not tell of itself is not asked
// again: its user may be allowed to meanwhile, or another server be there.
const silentFor = 10 * time.Minute

// look asks Redis about itself, once. A server that does not tell is left alone
// for a while: the one within the process, and one whose user may not.
func (f *Filter) look(ctx context.Context) {
	now := f.o.Now()
	f.past.lives(now, f.o.Tuning().ReceiptTTL)
	if now.Before(f.silent) {
		return
	}
	var s serverStats
	err := f.guard.look(ctx, f.guard.metrics.info, func(ctx context.Context) (err error) {
		s, err = f.serverStats(ctx)
		if tellsNothing(err) {
			f.silent = now.Add(silentFor)
			return nil // an answer, if not the one that was hoped for
		}
		return err
	})
	if err != nil || now.Before(f.silent) {
		return // an outage is the breaker's to tell of
	}
	m := f.guard.metrics
	n := f.past.look(now, s)
	if n.emptied {
		m.emptied.Inc()
	}
	m.evicted.Add(float64(n.evicted))
	m.memory.Set(float64(s.memory))
	m.memoryMost.Set(float64(s.memoryMost))
}

// tellsNothing reports whether a reply says that the server does not know the
// question or may not answer it. Other errors pass: a proxy has those, too.
func tellsNothing(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && (strings.HasPrefix(reply.Error(), "NOPERM") ||
		strings.HasPrefix(reply.Error(), "ERR unknown command") ||
		strings.HasPrefix(reply.Error(), "ERR wrong number of arguments")) // that within the process
}

// serverStats reads what all nodes say.
func (f *Filter) serverStats(ctx context.Context) (serverStats, error) {
	cluster, ok := f.o.Client.(*redis.ClusterClient)
	if !ok {
		return nodeStats(ctx, f.o.Client)
	}
	var mu sync.Mutex
	all := serverStats{nodes: map[string]nodeCounts{}}
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		s, err := nodeStats(ctx, node)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(all.nodes, s.nodes)
		all.memory, all.memoryMost = all.memory+s.memory, all.memoryMost+s.memoryMost
		return nil
	})
	return all, err
}

func nodeStats(ctx context.Context, node redis.Cmdable) (serverStats, error) {
	text, err := node.Info(ctx, "server", "stats", "memory", "commandstats").Result()
	if err != nil {
		return serverStats{}, err
	}
	return parseInfo(text), nil
}

// parseInfo reads the reply to INFO. What is not there is zero.
func parseInfo(text string) (s serverStats) {
	var process string
	var counts nodeCounts
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		switch name {
		case "run_id":
			process = value
		case "evicted_keys":
			counts.evicted = whole(value)
		case "used_memory":
			s.memory = whole(value)
		case "maxmemory":
			s.memoryMost = whole(value)
		case "cmdstat_flushall", "cmdstat_flushdb":
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			counts.flushes += whole(calls)
		}
	}
	s.nodes = map[string]nodeCounts{process: counts}
	return s
}

// whole reads a number; zero, when it is none.
func whole(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
