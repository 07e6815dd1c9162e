//go:build unix

package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// counters are what servers have counted since they started.
type counters map[string]float64

// isCount tells what can have been counted from what else is written as a number.
func isCount(n float64) bool { return n >= 0 && n < 1<<63 }

// since is what came after an earlier reading; a server that was restarted
// between the two began anew.
func (c counters) since(before counters) counters {
	d := counters{}
	for name, n := range c {
		if d[name] = n - before[name]; d[name] < 0 {
			d[name] = n
		}
	}
	return d
}

func (c counters) sum() float64 {
	var n float64
	for _, v := range c {
		n += v
	}
	return n
}

// list names what is not zero, the most first.
func (c counters) list() string {
	names := slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		return cmp.Or(cmp.Compare(c[b], c[a]), strings.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		if c[name] > 0 {
			parts = append(parts, name+" "+grouped(int64(c[name])))
		}
	}
	return strings.Join(parts, ", ")
}

// sqlCounters are those of MySQL, the whole server's.
func (s *stage) sqlCounters(ctx context.Context) (counters, error) {
	rows, err := s.admin.QueryContext(ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_commit', 'Com_rollback',"+
		" 'Innodb_rows_read', 'Innodb_rows_inserted', 'Innodb_row_lock_waits', 'Threads_running')")
	if err != nil {
		return nil, fmt.Errorf("ask MySQL for its counters: %w", err)
	}
	defer func() { _ = rows.Close() }() // its error is rows.Err
	c := counters{}
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return nil, fmt.Errorf("ask MySQL for its counters: %w", err)
		}
		if c[strings.ToLower(name)], err = strconv.ParseFloat(text, 64); err != nil {
			return nil, fmt.Errorf("ask MySQL for %s: %w", name, err)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("ask MySQL for its counters: %w", err)
	}
	return c, nil
}

// redisCommands counts the commands of Redis by name, without those that ask
// how it is.
func (s *stage) redisCommands(ctx context.Context) (counters, error) {
	info, err := s.redis.Info(ctx, "commandstats").Result()
	if err != nil {
		return nil, fmt.Errorf("ask Redis for its counters: %w", err)
	}
	return parseCommands(info), nil
}

// housekeeping are the commands by which a gateway and the bench look at Redis,
// and by which a connection begins.
func housekeeping() []string {
	return []string{"client", "config", "dbsize", "hello", "info", "memory", "ping", "scan", "select"}
}

func parseCommands(info string) counters {
	c := counters{}
	for line := range strings.Lines(info) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		command, _, _ := strings.Cut(name, "|")
		if !ok || slices.Contains(housekeeping(), command) {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		if n, err := strconv.ParseFloat(calls, 64); err == nil && isCount(n) {
			c[name] = n
		}
	}
	return c
}

// ledgerTransactions counts the attempts at a transaction of several gateways.
func ledgerTransactions(ctx context.Context, admins []string) (counters, error) {
	c := counters{}
	for _, admin := range admins {
		g, err := readGauges(ctx, admin)
		if err != nil {
			return nil, err
		}
		if c[admin], err = g.need("oncegate_ledger_transaction_seconds_count"); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// traffic is what the servers have counted at one moment.
type traffic struct{ sql, redis, ledgers counters }

func (s *stage) traffic(ctx context.Context, admins []string) (t traffic, err error) {
	if t.ledgers, err = ledgerTransactions(ctx, admins); err != nil {
		return t, err
	}
	if t.sql, err = s.sqlCounters(ctx); err != nil {
		return t, err
	}
	t.redis, err = s.redisCommands(ctx)
	return t, err
}

// quiet returns the traffic when none has come for a moment, or when it does
// not end: what follows an answer, such as telling Redis of it, still counts.
func (s *stage) quiet(ctx context.Context, admins []string) (traffic, error) {
	last, err := s.traffic(ctx, admins)
	for range 50 {
		if err != nil {
			return last, err
		}
		sleepUntil(ctx, time.Now().Add(100*time.Millisecond))
		var now traffic
		now, err = s.traffic(ctx, admins)
		same := now.redis.sum() == last.redis.sum() && now.ledgers.sum() == last.ledgers.sum()
		if last = now; same {
			break
		}
	}
	return last, err
}
