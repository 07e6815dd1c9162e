package result

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/oncegate/oncegate/loadtest/decimal"
	"github.com/oncegate/oncegate/loadtest/measure"
)

// Metric is a named number of a result, such as p99(created) or rate(all).
type Metric struct {
	name    string
	measure string  // p, mean, max, count, rate, share, lag, dropped, findings
	p       float64 // percentile
	outcome measure.Outcome
	all     bool
	service bool
}

// Unit says how a metric's numbers are written.
type Unit uint8

// The units.
const (
	Plain Unit = iota
	Seconds
	Percent
)

const metricHelp = "want p50|p90|p95|p99|p99.9|…, mean, max, count, rate or share of an outcome or of all, " +
	"such as p99(created), p99(created.service), share(unavailable); or lag, dropped, findings"

// ParseMetric reads a name. A name that is not known is an error, never a number.
func ParseMetric(text string) (Metric, error) {
	m := Metric{name: text}
	kind, rest, hasOutcome := strings.Cut(text, "(")
	if !hasOutcome {
		switch kind {
		case "lag", "dropped", "findings":
			m.measure = kind
			return m, nil
		}
		return Metric{}, fmt.Errorf("metric %q: %s", text, metricHelp)
	}
	inside, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return Metric{}, fmt.Errorf("metric %q: the closing parenthesis is missing", text)
	}
	inside, m.service = strings.CutSuffix(inside, ".service")
	if m.all = inside == "all"; !m.all {
		o, err := measure.ParseOutcome(inside)
		if err != nil {
			return Metric{}, fmt.Errorf("metric %q: %w", text, err)
		}
		m.outcome = o
	}
	switch kind {
	case "mean", "max":
		m.measure = kind
		return m, nil
	case "count", "rate", "share":
		m.measure = kind
		if m.service {
			return Metric{}, fmt.Errorf("metric %q: only times have a service form", text)
		}
		return m, nil
	}
	number, ok := strings.CutPrefix(kind, "p")
	p, err := decimal.Parse(number)
	if !ok || err != nil || p <= 0 || p > 100 {
		return Metric{}, fmt.Errorf("metric %q: %s", text, metricHelp)
	}
	m.measure, m.p = "p", p
	return m, nil
}

// perSecond tells whether the metric's numbers may be written with /s.
func (m Metric) perSecond() bool { return m.measure == "rate" }

// Unit is the unit of the metric's numbers.
func (m Metric) Unit() Unit {
	switch m.measure {
	case "p", "mean", "max", "lag":
		return Seconds
	case "share":
		return Percent
	}
	return Plain
}

// Of takes the metric of a result. It reports false when there is nothing to
// take it of: no request had this outcome.
func (m Metric) Of(r *Result) (float64, bool) {
	switch m.measure {
	case "lag":
		return r.Lag.At(99).Seconds(), true
	case "dropped":
		return float64(r.dropped()), true
	case "findings":
		return float64(r.Verdict.Findings.Total()), true
	case "count":
		return float64(m.count(r)), true
	case "rate":
		return float64(m.count(r)) / max(r.Seconds(), 1e-9), true
	case "share":
		return 100 * float64(m.count(r)) / float64(max(r.Totals.Requests, 1)), r.Totals.Requests > 0
	}
	h := m.histogram(r)
	if h.Empty() {
		return 0, false
	}
	switch m.measure {
	case "mean":
		return h.Average().Seconds(), true
	case "max":
		return h.At(100).Seconds(), true
	}
	return h.At(m.p).Seconds(), true
}

// atLeast is a percentile or the maximum as low as it can have been: a request that
// found no room would have been sent while others took their time, so it counts as
// slower than all that were answered. It reports false when the number is one of
// those, and then says nothing. Other metrics are what [Metric.Of] says.
func (m Metric) atLeast(r *Result) (float64, bool) {
	dropped := r.dropped()
	if dropped == 0 || m.measure != "p" && m.measure != "max" {
		return m.Of(r)
	}
	share := m.p / 100
	if m.measure == "max" {
		share = 1
	}
	h := m.histogram(r)
	rank, answered := math.Ceil(share*float64(h.count()+dropped)), float64(h.count())
	if rank > answered {
		return 0, false
	}
	return h.At(100 * rank / answered).Seconds(), true
}

// dropped are the starts and the follow-ups that found no room.
func (r *Result) dropped() int64 { return r.Totals.DroppedStarts + r.Totals.DroppedFollowUps }

func (m Metric) count(r *Result) int64 {
	if m.all {
		return r.Totals.Requests
	}
	if o := r.Outcome(m.outcome); o != nil {
		return o.Count
	}
	return 0
}

func (m Metric) histogram(r *Result) Histogram {
	sum := Wrap(nil)
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		// A customer who left did not wait for an answer: not among "all".
		if (m.all && o.Outcome != measure.HungUp) || (!m.all && o.Outcome == m.outcome) {
			h := o.Response
			if m.service {
				h = o.Service
			}
			sum.add(h)
		}
	}
	return sum
}

// Format writes a number of the metric for the eye.
func (m Metric) Format(v float64) string {
	switch m.Unit() { //nolint:exhaustive // Plain is what follows
	case Seconds:
		return Duration(time.Duration(v * float64(time.Second)))
	case Percent:
		return strconv.FormatFloat(v, 'f', 2, 64) + "%"
	}
	if v == float64(int64(v)) {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// Duration writes a time with three digits.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + "µs"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 2, 64) + "ms"
	case d < 100*time.Millisecond:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + "ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + "s"
	}
	return d.Round(time.Second).String()
}
