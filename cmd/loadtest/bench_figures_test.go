//go:build unix

package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/bench"
)

// figures are the sheets of a small run, by their path, and its text.
func figures(t *testing.T, gateway string, seconds float64, args ...string) (sheets map[string][]bench.Sheet, stdout string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bench.json")
	code, stdout, stderr := ranLongEnough(t, gateway, seconds, append(args, "--json", file)...)
	require.Equal(t, exitOK, code, stderr)
	report := reportIn(t, file)
	require.Empty(t, report.Rows, "nothing is compared")
	sheets = map[string][]bench.Sheet{}
	for i := range report.Sheets {
		s := report.Sheets[i]
		sheets[s.ID] = append(sheets[s.ID], s)
		require.Contains(t, stdout, s.Title)
		for _, l := range s.Lines {
			require.Len(t, l.Figures, len(s.Columns), l.Name)
		}
	}
	return sheets, stdout
}

// figure is what stands in a line and a column; the last of those that have the
// name.
func figure(t *testing.T, s *bench.Sheet, line, column string) bench.Figure {
	t.Helper()
	l := slices.IndexFunc(s.Lines, func(l bench.Line) bool { return l.Name == line })
	require.GreaterOrEqual(t, l, 0, line)
	c := slices.IndexFunc(s.Columns, func(c bench.Column) bool { return c.Name == column })
	require.GreaterOrEqual(t, c, 0, column)
	return s.Lines[l].Figures[c]
}

func tellsMemoryLatencyAndStorms(t *testing.T, gateway string) {
	t.Helper()
	sheets, stdout := figures(t, gateway, 0.5, "--paths", "memory,latency,storm", "--rounds", "2",
		"--connections", "8", "--keys", "300", "--open", "50", "--clients", "40")

	require.Len(t, sheets["memory"], 2)
	process, redis := &sheets["memory"][0], &sheets["memory"][1]
	for _, line := range []string{"started", "50 idle connections", "all of them closed", "receipts, default bounds", "receipts, bound by bytes"} {
		for _, column := range []string{"resident", "after a collection", "live heap and stacks"} {
			require.Positive(t, figure(t, process, line, column)[0], line, column)
		}
	}
	for _, line := range []string{"receipts, default bounds", "receipts, bound by bytes"} {
		require.GreaterOrEqual(t, figure(t, process, line, "receipts")[0], 300.0, line)
		require.Positive(t, figure(t, process, line, "counted for them")[0], line)
	}
	require.Contains(t, stdout, "not full with these keys")
	for _, line := range []string{"a mark", "a receipt"} {
		require.GreaterOrEqual(t, figure(t, redis, line, "keys")[0], 300.0, line)
		bytes := figure(t, redis, line, "MEMORY USAGE, mean")[0]
		require.Greater(t, bytes, figure(t, redis, line, "value")[0]+figure(t, redis, line, "name")[0], line)
	}

	require.Len(t, sheets["latency"], 1)
	for _, line := range []string{"created", "replayed from Redis", "replayed in process", "refused: key reused"} {
		s := &sheets["latency"][0]
		require.Positive(t, figure(t, s, line, "ceiling")[0], line)
		require.Positive(t, figure(t, s, line, "answers")[0], line)
		require.GreaterOrEqual(t, figure(t, s, line, "p99.9")[0], figure(t, s, line, "p50")[0], line)
	}

	require.Len(t, sheets["storm"], 1)
	for _, line := range []string{"1", "3"} {
		s := &sheets["storm"][0]
		for round := range 2 {
			require.GreaterOrEqual(t, figure(t, s, line, "transactions")[round], 1.0, line)
			require.GreaterOrEqual(t, figure(t, s, line, "commits")[round], 1.0, line)
			require.GreaterOrEqual(t, figure(t, s, line, "rows inserted")[round], 2.0, line, "an order and its record")
			require.Positive(t, figure(t, s, line, "Redis commands")[round], line)
			require.InDelta(t, 1, figure(t, s, line, "created")[round], 0, line)
			require.GreaterOrEqual(t, figure(t, s, line, "last has the order")[round], figure(t, s, line, "first answer")[round], line)
		}
	}
}

func seesRedisGoAndComeBack(t *testing.T, gateway string) {
	t.Helper()
	sheets, stdout := figures(t, gateway, 1, "--paths", "recovery", "--rounds", "1", "--connections", "8")
	require.Len(t, sheets["recovery"], 1)
	s := &sheets["recovery"][0]
	require.Len(t, s.Lines, 2*5)
	answered := 0.0
	for _, l := range s.Lines {
		answered += figure(t, s, l.Name, "created")[0]
		require.Zero(t, figure(t, s, l.Name, "without Retry-After")[0], l.Name)
	}
	require.Positive(t, answered)
	require.Contains(t, stdout, "the gateway's queues hold 2,048 orders")
	require.NotContains(t, stdout, "its breaker opened 0 times")
}
