package result

import (
	"fmt"
	"strings"
	"time"

	"github.com/oncegate/oncegate/loadtest/decimal"
)

// Threshold is a bound on a metric, such as p99(created)<50ms.
type Threshold struct {
	text   string
	metric Metric
	op     string
	bound  float64
}

// ThresholdCheck is what became of a threshold.
type ThresholdCheck struct {
	Threshold string `json:"threshold"`
	Actual    string `json:"actual"`
	Passed    bool   `json:"passed"`
}

// ParseThreshold reads a bound. Names and units that do not fit are errors.
func ParseThreshold(text string) (Threshold, error) {
	at := strings.IndexAny(text, "<>=")
	if at < 0 {
		return Threshold{}, fmt.Errorf("threshold %q: want METRIC<BOUND, such as p99(created)<50ms", text)
	}
	t := Threshold{text: text, op: text[at : at+1]}
	rest := text[at+1:]
	if strings.HasPrefix(rest, "=") {
		t.op += "="
		rest = rest[1:]
	}
	if t.op == "=" {
		t.op = "=="
	}
	var err error
	if t.metric, err = ParseMetric(strings.TrimSpace(text[:at])); err != nil {
		return Threshold{}, fmt.Errorf("threshold %q: %w", text, err)
	}
	if t.bound, err = parseBound(t.metric, strings.TrimSpace(rest)); err != nil {
		return Threshold{}, fmt.Errorf("threshold %q: %w", text, err)
	}
	return t, nil
}

// ParseThresholds reads several.
func ParseThresholds(texts []string) ([]Threshold, error) {
	all := make([]Threshold, len(texts))
	for i, text := range texts {
		t, err := ParseThreshold(text)
		if err != nil {
			return nil, err
		}
		all[i] = t
	}
	return all, nil
}

func parseBound(m Metric, text string) (float64, error) {
	switch m.Unit() { //nolint:exhaustive // Plain is what follows
	case Seconds:
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("the bound %q must be a time such as 50ms", text)
		}
		return d.Seconds(), nil
	case Percent:
		number, ok := strings.CutSuffix(text, "%")
		v, err := decimal.Parse(number)
		if !ok || err != nil {
			return 0, fmt.Errorf("the bound %q must be a percentage such as 1%%", text)
		}
		return v, nil
	}
	number := text
	if m.perSecond() {
		number = strings.TrimSuffix(text, "/s")
	}
	v, err := decimal.Parse(number)
	if err != nil {
		return 0, fmt.Errorf("the bound %q must be a number", text)
	}
	return v, nil
}

// Check holds a result against the threshold. Nothing to measure is a failure:
// a threshold on an outcome that did not occur has not been met. Nor has one on
// times that may be those of requests which found no room.
func (t Threshold) Check(r *Result) ThresholdCheck {
	if _, ok := t.metric.Of(r); !ok {
		return ThresholdCheck{t.text, "no such request", false}
	}
	v, ok := t.metric.atLeast(r)
	if !ok {
		return ThresholdCheck{t.text, fmt.Sprintf("not known: %d requests found no room", r.dropped()), false}
	}
	passed := false
	switch t.op {
	case "<":
		passed = v < t.bound
	case "<=":
		passed = v <= t.bound
	case ">":
		passed = v > t.bound
	case ">=":
		passed = v >= t.bound
	case "==":
		passed = v == t.bound
	}
	return ThresholdCheck{t.text, t.metric.Format(v), passed}
}
