//go:build unix

package bench

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func row(u unit, target *Target, subject, baseline []float64) Row {
	r := Row{
		ID: "x", Path: "new orders", Connections: 256, Unit: u, Target: target,
		Subject: Side{Name: "gateway"}, Baseline: Side{Name: "a baseline"},
	}
	for i := range subject {
		for side, value := range map[*Side]float64{&r.Subject: subject[i], &r.Baseline: baseline[i]} {
			side.add(u, Sample{PerSecond: value, P50: time.Duration(value)})
		}
	}
	r.conclude()
	return r
}

func TestTableShowsMediansRatioSpreadAndTarget(t *testing.T) {
	t.Parallel()
	r := Report{
		Rounds: 3, Window: 3 * time.Second,
		Environment: Environment{
			System: "linux/amd64", Processors: 2, Processor: "Some CPU", Memory: "8 kB", Go: "go1.26", MySQL: "9.7.4", Redis: "7.0.15",
			Settings: map[string]string{"sync_binlog": "1"}, Gateway: "oncegate 1", LoadBefore: 2,
		},
		Rows: []Row{
			row(rate, &Target{AtLeast: 4.5, Aim: 6}, []float64{5000, 4000, 4400}, []float64{1000, 1000, 1000}),
			row(halfway, &Target{AtLeast: 1.3, Aim: 1.1, Lower: true}, []float64{1.1e6}, []float64{1e6}),
			row(rate, nil, []float64{1_234_567}, []float64{1}),
		},
	}
	r.Rows[2].Notes = []string{"something odd"}
	var b bytes.Buffer
	require.NoError(t, r.Text(&b))
	require.Equal(t, `linux/amd64, 2 processors, Some CPU, 8 kB; load 2.0 before, 0.0 after
go1.26; MySQL 9.7.4; Redis 7.0.15
innodb_flush_log_at_trx_commit=, sync_binlog=1, log_bin=, innodb_buffer_pool_size=, innodb_redo_log_capacity=
oncegate 1

The sides took turns, each first in every other round: rounds 3, each turn 3s after its warm-up.

| path       | against    | connections | this        | that    | ratio        | min–max               | at least | aim     | met       |
| ---------- | ---------- | ----------- | ----------- | ------- | ------------ | --------------------- | -------- | ------- | --------- |
| new orders | a baseline | 256         | 4,400/s     | 1,000/s | 4.40 ×       | 4.00–5.00             | ≥ 4.5 ×  | ≥ 6 ×   | too noisy |
| new orders | a baseline | 256         | 1.10 ms     | 1.00 ms | 1.10 ×       | 1.10–1.10             | ≤ 1.3 ×  | ≤ 1.1 × | aim       |
| new orders | a baseline | 256         | 1,234,567/s | 1/s     | 1234567.00 × | 1234567.00–1234567.00 | –        | –       | –         |

- new orders, 256 connections: something odd
- The machine was busy with something else when this began: only a quiet one gives numbers to quote.
`, b.String())
}

func TestReportIsJSONWithEveryRound(t *testing.T) {
	t.Parallel()
	r := Report{Schema: schema, Rows: []Row{row(rate, nil, []float64{2, 4}, []float64{1, 1})}}
	var b bytes.Buffer
	require.NoError(t, r.Write(&b))
	var back Report
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	require.Equal(t, r, back)
	require.Equal(t, []float64{2, 4}, back.Rows[0].Ratios)
}

func TestNumbersAreGrouped(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 10_000_000: "10,000,000", -123: "-123", -1234: "-1,234"} {
		require.Equal(t, want, grouped(n))
	}
}

func TestVerdictNeedsMoreThanNoise(t *testing.T) {
	t.Parallel()
	one := []float64{1, 1, 1, 1, 1}
	for name, tc := range map[string]struct {
		ratios []float64
		want   Verdict
		says   string
	}{
		"the same":      {[]float64{1, 1.05, 0.95, 1.01, 0.99}, Fine, "no path is below"},
		"slower":        {[]float64{0.8, 0.81, 0.85, 0.79, 0.89}, Slower, "0.81 × (0.79–0.89): slower"},
		"noisy":         {[]float64{1, 0.7, 1.3, 1.1, 0.9}, Unclear, "1.00 × (0.70–1.30): the noise is too large to tell"},
		"noisy, slower": {[]float64{0.8, 0.81, 0.85, 0.79, 0.95}, Unclear, "too large"},
	} {
		r := Report{Rows: []Row{row(rate, &Target{AtLeast: slowest}, tc.ratios, one)}}
		got, why := r.Verdict()
		require.Equal(t, tc.want, got, name)
		require.Contains(t, why, tc.says, name)
	}
	// One path that is slower for sure outweighs one that cannot be told.
	r := Report{Rows: []Row{
		row(rate, nil, []float64{1, 0.7, 1.3, 1.1, 0.9}, one),
		row(rate, nil, []float64{0.5, 0.5, 0.5, 0.5, 0.5}, one),
	}}
	got, why := r.Verdict()
	require.Equal(t, Slower, got)
	require.Len(t, strings.Split(why, "\n"), 2)
}
