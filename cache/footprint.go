package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Footprint is the measured memory of entries in Redis.
type Footprint struct {
	BytesPerKey float64
	Entries     int // that were measured; zero: there were none
	// Overhead says that the server told what its tables need per key.
	Overhead bool
}

// Bounds of one measurement, which must not be felt by others.
const (
	footprintEntries = 16
	footprintScans   = 8
	footprintScan    = 128 // keys looked at by one command
)

// Footprint measures some entries, whichever the server names first. It sends
// some thirty short commands to each node, one after the other, every one
// bounded as all are, and none while the breaker is open.
func (f *Filter) Footprint(ctx context.Context) (Footprint, error) {
	if err := f.guard.breaker.refusal(); err != nil {
		return Footprint{}, fmt.Errorf("measure entries: %w", err)
	}
	var m measurement
	var err error
	if cluster, ok := f.o.Client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return m.measure(ctx, node, f.o.Prefix) })
	} else {
		err = m.measure(ctx, f.o.Client, f.o.Prefix)
	}
	if err != nil {
		return Footprint{}, fmt.Errorf("measure entries: %w", err)
	}
	return m.result(), nil
}

// measurement sums nodes up, several at once.
type measurement struct {
	mu       sync.Mutex
	bytes    int64
	entries  int
	overhead float64 // per key, summed over nodes
	nodes    int     // that told it
}

func (m *measurement) result() Footprint {
	if m.entries == 0 {
		return Footprint{}
	}
	f := Footprint{BytesPerKey: float64(m.bytes) / float64(m.entries), Entries: m.entries, Overhead: m.nodes > 0}
	if m.nodes > 0 {
		f.BytesPerKey += m.overhead / float64(m.nodes)
	}
	return f
}

func (m *measurement) measure(ctx context.Context, node redis.Cmdable, prefix string) error {
	var cursor uint64
	bytes, entries := int64(0), 0
	for range footprintScans {
		keys, next, err := node.Scan(ctx, cursor, literally(prefix)+":"+keyVersion+":*", footprintScan).Result()
		if err != nil {
			return err
		}
		for _, key := range keys[:min(len(keys), footprintEntries-entries)] {
			n, err := node.MemoryUsage(ctx, key).Result()
			if errors.Is(err, redis.Nil) {
				continue // it has expired
			}
			if err != nil {
				return err
			}
			bytes, entries = bytes+n, entries+1
		}
		if cursor = next; cursor == 0 || entries == footprintEntries {
			break
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes, m.entries = m.bytes+bytes, m.entries+entries
	if n, ok := tableOverhead(ctx, node); ok {
		m.overhead, m.nodes = m.overhead+n, m.nodes+1
	}
	return nil
}

// literally writes a text as a pattern that fits nothing else.
func literally(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// tableOverhead is what the server's own tables need per key: MEMORY USAGE does
// not count it. Not every server tells.
func tableOverhead(ctx context.Context, node redis.Cmdable) (perKey float64, ok bool) {
	asker, ok := node.(interface {
		Do(ctx context.Context, args ...any) *redis.Cmd
	})
	if !ok {
		return 0, false
	}
	reply, err := asker.Do(ctx, "MEMORY", "STATS").Result()
	if err != nil {
		return 0, false
	}
	stats := pairs(reply)
	keys := number(stats["keys.count"])
	tables := 0.0
	for name, value := range stats {
		if db := pairs(value); strings.HasPrefix(name, "db.") {
			tables += number(db["overhead.hashtable.main"]) + number(db["overhead.hashtable.expires"])
		}
	}
	if keys == 0 || tables == 0 {
		return 0, false
	}
	return tables / keys, true
}

// pairs reads a map in either form of the protocol.
func pairs(reply any) map[string]any {
	all := map[string]any{}
	switch r := reply.(type) {
	case map[any]any:
		for k, v := range r {
			if name, ok := k.(string); ok {
				all[name] = v
			}
		}
	case []any:
		for i := 0; i+1 < len(r); i += 2 {
			if name, ok := r[i].(string); ok {
				all[name] = r[i+1]
			}
		}
	}
	return all
}

func number(v any) float64 {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	case string:
		f, _ := strconv.ParseFloat(n, 64) // zero, when it is none
		return f
	default:
		return 0
	}
}
