package result

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/oncegate/oncegate/loadtest/decimal"
)

// Change is one metric in two sets of runs.
type Change struct {
	Metric   string  `json:"metric"`
	Before   string  `json:"before"`
	After    string  `json:"after"`
	Relative float64 `json:"relative"` // 0.1 is ten percent more
	Noise    float64 `json:"noise"`    // half the spread of the repeated runs, relative; 0 with one run each
	Clear    bool    `json:"clear"`    // the change is larger than the noise
	Known    bool    `json:"known"`    // both sides have the metric
}

// FailIf is a bound on a change, such as p99(created)>+10%.
type FailIf struct {
	text   string
	metric Metric
	more   bool // fails above the bound, otherwise below it
	bound  float64
}

// ParseFailIf reads a bound on a change: METRIC>+N% or METRIC<-N%.
func ParseFailIf(text string) (FailIf, error) {
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return FailIf{}, fmt.Errorf("fail-if %q: want METRIC>+N%% or METRIC<-N%%", text)
	}
	m, err := ParseMetric(strings.TrimSpace(text[:at]))
	if err != nil {
		return FailIf{}, fmt.Errorf("fail-if %q: %w", text, err)
	}
	number, ok := strings.CutSuffix(strings.TrimSpace(text[at+1:]), "%")
	v, err := decimal.Parse(number)
	if !ok || err != nil {
		return FailIf{}, fmt.Errorf("fail-if %q: the bound must be a percentage such as +10%%", text)
	}
	return FailIf{text, m, text[at] == '>', v / 100}, nil
}

// Check applies the bound to two sets of runs. A metric that one side lacks
// fails: what cannot be compared has not been found equal.
func (f FailIf) Check(before, after []*Result) ThresholdCheck {
	c := compare(f.metric, before, after)
	if !c.Known {
		return ThresholdCheck{f.text, "not in both", false}
	}
	broken := c.Relative < f.bound
	if f.more {
		broken = c.Relative > f.bound
	}
	actual := fmt.Sprintf("%+.1f%%", 100*c.Relative)
	if broken && !c.Clear && c.Noise > 0 {
		return ThresholdCheck{f.text, actual + fmt.Sprintf(", within the noise of ±%.1f%%", 100*c.Noise), true}
	}
	return ThresholdCheck{f.text, actual, !broken}
}

// Caveats are why a comparison says less than it seems to: runs whose numbers may
// not be believed, which no bound can be held against, and runs that left requests
// out or were not asked for the same.
func Caveats(before, after []*Result) (unusable, unlike []string) {
	first := &before[0].Plan
	for _, r := range slices.Concat(before, after) {
		switch {
		case !r.Valid.Valid:
			unusable = append(unusable, fmt.Sprintf("run %s is not valid: %s", r.Run, strings.Join(r.Valid.Reasons, "; ")))
		case !r.Verdict.Passed:
			unusable = append(unusable, fmt.Sprintf("the verdict on run %s was not passed", r.Run))
		case r.Interrupted:
			unusable = append(unusable, fmt.Sprintf("run %s was interrupted", r.Run))
		}
		if n := r.dropped(); n > 0 {
			unlike = append(unlike, fmt.Sprintf("in run %s %d requests found no room: its times are of those that were made", r.Run, n))
		}
		p := &r.Plan
		for _, d := range []struct {
			what      string
			one, this any
		}{
			{"scenario", first.Scenario, p.Scenario},
			{"model", first.Model, p.Model},
			{"rate", first.Rate, p.Rate},
			{"shape", first.Shape, p.Shape},
			{"number of clients", first.Clients, p.Clients},
			{"duration", first.Seconds, p.Seconds},
		} {
			if d.one != d.this {
				unlike = append(unlike, fmt.Sprintf("run %s had the %s %v, run %s had %v", before[0].Run, d.what, d.one, r.Run, d.this))
			}
		}
	}
	return unusable, unlike
}

// Compare lays two sets of runs side by side: medians, relative change, and the
// noise that repeated runs of one side show.
func Compare(before, after []*Result) ([]Change, error) {
	if len(before) == 0 || len(after) == 0 {
		return nil, errors.New("compare: each side needs at least one result")
	}
	names := []string{"rate(all)"}
	seen := map[string]bool{}
	for _, r := range slices.Concat(before, after) {
		for i := range r.Outcomes {
			o := r.Outcomes[i].Outcome.String()
			if seen[o] {
				continue
			}
			seen[o] = true
			for _, m := range []string{"count", "p50", "p99"} {
				names = append(names, m+"("+o+")")
			}
		}
	}
	for _, m := range []string{"p50", "p90", "p99", "p99.9", "max"} {
		names = append(names, m+"(all)", m+"(all.service)")
	}
	names = append(names, "lag", "dropped", "findings")
	changes := make([]Change, 0, len(names))
	for _, n := range names {
		m, err := ParseMetric(n)
		if err != nil {
			return nil, err
		}
		changes = append(changes, compare(m, before, after))
	}
	return changes, nil
}

func compare(m Metric, before, after []*Result) Change {
	a, okA := values(m, before)
	b, okB := values(m, after)
	c := Change{Metric: m.name, Before: "–", After: "–", Known: okA && okB}
	if okA {
		c.Before = m.Format(median(a))
	}
	if okB {
		c.After = m.Format(median(b))
	}
	if !c.Known {
		return c
	}
	base := median(a)
	switch {
	case base != 0:
		c.Relative = median(b)/base - 1
	case median(b) > 0:
		c.Relative = math.MaxFloat32 // from nothing to something
	}
	c.Noise = max(spread(a), spread(b))
	c.Clear = math.Abs(c.Relative) > c.Noise
	return c
}

func values(m Metric, runs []*Result) ([]float64, bool) {
	var v []float64
	for _, r := range runs {
		if x, ok := m.Of(r); ok {
			v = append(v, x)
		}
	}
	return v, len(v) == len(runs)
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// spread is half the distance between the extremes, relative to the median.
func spread(v []float64) float64 {
	if mid := median(v); mid != 0 && len(v) > 1 {
		return (slices.Max(v) - slices.Min(v)) / 2 / math.Abs(mid)
	}
	return 0
}
