//go:build linux

package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// sample is what a deployment holds at one time, and what was counted until then.
// Sizes are in bytes. The gateway is the one that nothing ends.
type sample struct {
	label string
	at    time.Duration

	requests, keys, unavailable, faults, checked, violations int

	resident, goroutines, files float64 // of the gateway
	sessions, orders, records   int
	events, tables              int
	redisKeys, redisMemory      int
}

func (s *soak) sampleNow(label string, at time.Duration) { s.keep(label, s.sampleOf(at)) }

// keep adds a sample, with what has been counted meanwhile.
func (s *soak) keep(label string, now sample) {
	now.label = label
	now.requests, now.keys, now.unavailable = s.so.requests, s.so.keys, s.so.unavailable
	now.faults, now.checked, now.violations = s.so.faults, s.so.checked, s.so.violations
	s.samples = append(s.samples, now)
	s.t.Logf("%s", now.row())
}

func (s *soak) sampleOf(at time.Duration) sample {
	s.t.Helper()
	n := sample{
		at:         at,
		resident:   s.gauge("process_resident_memory_bytes"),
		goroutines: s.gauge("go_goroutines"),
		files:      s.gauge("process_open_fds"),
	}
	// The list of processes has their statements, some with bytes that are no text.
	var name string
	require.NoError(s.t, s.admin.QueryRowContext(context.Background(), "SHOW GLOBAL STATUS LIKE 'Threads_connected'").Scan(&name, &n.sessions))
	n.orders = number(s.t, s.admin, "SELECT COUNT(*) FROM orders")
	n.records = number(s.t, s.admin, "SELECT COUNT(*) FROM idempotency_records")
	n.events = number(s.t, s.admin, "SELECT COUNT(*) FROM order_events")
	n.tables = s.tableBytes()
	ctx := context.Background()
	keys, err := s.cache.DBSize(ctx).Result()
	require.NoError(s.t, err)
	n.redisKeys, n.redisMemory = int(keys), s.memory()
	return n
}

// gauge is a metric of the gateway that nothing ends.
func (s *soak) gauge(name string) float64 {
	s.t.Helper()
	value, err := s.sites[0].gauge(name)
	require.NoError(s.t, err)
	return value
}

// tableBytes is what the tables and their indexes take.
func (s *soak) tableBytes() (n int) {
	s.t.Helper()
	ctx := context.Background()
	conn, err := s.admin.Conn(ctx)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, conn.Close()) }()
	if s.engine == "MySQL" { // which would answer from yesterday
		_, err = conn.ExecContext(ctx, "SET SESSION information_schema_stats_expiry = 0")
		require.NoError(s.t, err)
	}
	require.NoError(s.t, conn.QueryRowContext(ctx,
		"SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = DATABASE()").Scan(&n))
	return n
}

const mebi = 1 << 20

func (n sample) row() string {
	return fmt.Sprintf("| %s | %d | %d | %d | %.0f | %.0f | %.0f | %d | %d | %d | %d | %d | %d | %.1f | %d | %d |",
		n.label, n.requests, n.keys, n.faults, n.resident/mebi, n.goroutines, n.files, n.sessions,
		n.orders, n.records, n.events, n.tables/mebi, n.redisKeys, float64(n.redisMemory)/mebi, n.checked, n.violations)
}

// table is the samples as a table of a page.
func (s *soak) table(rate float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, Redis %s, three gateways, %.0f customers per second, `-soak %v -seed %d`; %d requests were answered 503\n\n",
		s.engine, s.database.Version, s.redis.Version, rate, *soakFor, s.seed, s.so.unavailable)
	b.WriteString("| minute | requests | keys | faults | gateway: MiB | goroutines | files | sessions | orders | records | events | tables: MiB | Redis: keys | MiB | histories checked | violations |\n")
	b.WriteString("| --- " + strings.Repeat("| ---: ", 15) + "|\n")
	for _, n := range s.samples {
		b.WriteString(n.row() + "\n")
	}
	return b.String()
}

// requireNoGrowth compares what is held late in the run with what was held once
// it had warmed up; orders are meant to stay, so that of tables it is the size of
// one order.
func (s *soak) requireNoGrowth(rate float64) {
	s.t.Helper()
	running := s.samples[1 : len(s.samples)-1]
	if len(running) < 4 {
		s.t.Errorf("%d samples are too few to tell growth: a longer run is needed", len(running))
		return
	}
	early, late := running[len(running)/4:len(running)/2+1], running[len(running)*3/4:]
	for _, g := range []struct {
		name  string
		of    func(sample) float64
		slack float64
	}{
		{"memory of the gateway", func(n sample) float64 { return n.resident }, 24 * mebi},
		{"goroutines", func(n sample) float64 { return n.goroutines }, goroutineSlack},
		{"open files", func(n sample) float64 { return n.files }, 20},
		{"sessions", func(n sample) float64 { return float64(n.sessions) }, 10},
		{"table bytes of an order", func(n sample) float64 { return float64(n.tables) / float64(n.orders) }, 100},
		{"records of an order", func(n sample) float64 { return float64(n.records) / float64(n.orders) }, 0},
		{"events of an order", func(n sample) float64 { return float64(n.events) / float64(n.orders) }, 0},
	} {
		was, is := 0.0, []float64(nil)
		for _, n := range early {
			was = max(was, g.of(n))
		}
		for _, n := range late {
			is = append(is, g.of(n))
		}
		slices.Sort(is)
		if middle := is[(len(is)-1)/2]; middle > 1.25*was+g.slack {
			s.t.Errorf("%s: %.1f at first, %.1f in the end", g.name, was, middle)
		}
	}
	// Entries of Redis expire: no more are there than were made in that time.
	most := int(1.5 * rate * (soakReceipts + markTTL).Seconds())
	for _, n := range running {
		if n.redisKeys > most || n.redisMemory > most*redisEntry+redisEmpty {
			s.t.Errorf("minute %s: Redis holds %d entries in %d bytes, of %d at most", n.label, n.redisKeys, n.redisMemory, most)
		}
	}
	before, after := s.samples[0], s.samples[len(s.samples)-1]
	require.LessOrEqual(s.t, after.files, before.files+20, "open files of a gateway at rest")
	require.LessOrEqual(s.t, after.goroutines, before.goroutines+goroutineSlack, "goroutines of a gateway at rest")
}

const (
	redisEntry = 2 << 10   // bytes of an entry, at most
	redisEmpty = 32 * mebi // of a Redis without entries, with its clients' buffers
)
