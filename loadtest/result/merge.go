package result

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/oncegate/oncegate/loadtest/measure"
)

// Merge adds the results of several machines that ran at the same time. Counts
// are summed and histograms merged without loss; the runs are laid over each
// other by the clocks of their machines. Thresholds are held against the sum,
// beside what became of those of each run.
func Merge(all []*Result, thresholds []Threshold) (*Result, error) {
	if len(all) < 2 {
		return nil, errors.New("merge: it takes two results at least")
	}
	m := &Result{
		Schema: Schema, Run: "merged", Plan: all[0].Plan, Environment: all[0].Environment,
		Behaviours: map[string]int64{}, Lag: Wrap(nil), Started: all[0].Started, Finished: all[0].Finished,
		Verdict: Verdict{Passed: true}, Valid: Validity{Valid: true},
	}
	m.Plan.Rate, m.Plan.Clients, m.Plan.Users = 0, 0, 0
	for _, r := range all {
		if r.Plan.Scenario != m.Plan.Scenario || r.Plan.Model != m.Plan.Model {
			return nil, fmt.Errorf("merge: %s ran %s (%s), %s ran %s (%s)", all[0].Run, m.Plan.Scenario, m.Plan.Model, r.Run, r.Plan.Scenario, r.Plan.Model)
		}
		for _, name := range r.names() {
			if slices.Contains(m.Merged, name) {
				return nil, fmt.Errorf("merge: run %s is there twice", name)
			}
			m.Merged = append(m.Merged, name)
		}
		if r.Started.Before(m.Started) {
			m.Started = r.Started
		}
		if r.Finished.After(m.Finished) {
			m.Finished = r.Finished
		}
	}
	for _, r := range all {
		m.add(r)
	}
	m.together(all)
	m.mergeSeries(all)
	for _, t := range thresholds {
		m.Thresholds = append(m.Thresholds, t.Check(m))
	}
	return m, nil
}

// names are the runs in a file.
func (r *Result) names() []string {
	if len(r.Merged) > 0 {
		return r.Merged
	}
	return []string{r.Run}
}

// leastTogether is the share of the shorter run in which the other one must have
// been going on: what was not at once, or whose clocks say so, has no rate.
const leastTogether = 0.5

// together finds runs that were not going on at the same time.
func (r *Result) together(all []*Result) {
	for i, a := range all {
		for _, b := range all[:i] {
			from, to := a.Started, a.Finished
			if b.Started.After(from) {
				from = b.Started
			}
			if b.Finished.Before(to) {
				to = b.Finished
			}
			if shared := to.Sub(from).Seconds(); shared < leastTogether*min(a.Seconds(), b.Seconds()) {
				r.Valid.Valid = false
				r.Valid.Reasons = append(r.Valid.Reasons, fmt.Sprintf("%s and %s were not going on at the same time, by the clocks of their machines", b.Run, a.Run))
			}
		}
	}
}

func (r *Result) add(o *Result) {
	r.Plan.Rate += o.Plan.Rate
	r.Plan.Clients += o.Plan.Clients
	r.Plan.Users += o.Plan.Users
	t, u := &r.Totals, o.Totals
	t.Planned += u.Planned
	t.DroppedStarts += u.DroppedStarts
	t.DroppedFollowUps += u.DroppedFollowUps
	t.Requests += u.Requests
	t.Sent += u.Sent
	t.Dials += u.Dials
	t.Stale += u.Stale
	t.ClientLimits += u.ClientLimits
	t.DialFaults += u.DialFaults
	for name, n := range o.Behaviours {
		r.Behaviours[name] += n
	}
	for i := range o.Outcomes {
		x := &o.Outcomes[i]
		mine := r.Outcome(x.Outcome)
		if mine == nil {
			r.Outcomes = append(r.Outcomes, OutcomeResult{Outcome: x.Outcome, Response: Wrap(nil), Service: Wrap(nil)})
			mine = &r.Outcomes[len(r.Outcomes)-1]
		}
		mine.Count += x.Count
		mine.Response.add(x.Response)
		mine.Service.add(x.Service)
	}
	slices.SortFunc(r.Outcomes, func(a, b OutcomeResult) int { return int(a.Outcome) - int(b.Outcome) })
	r.Lag.add(o.Lag)
	offset := o.Started.Sub(r.Started).Seconds()
	for _, k := range o.Marks {
		r.Marks = append(r.Marks, Mark{k.Seconds + offset, k.Text})
	}
	r.Interrupted = r.Interrupted || o.Interrupted
	if !o.Valid.Valid {
		r.Valid.Valid = false
		for _, reason := range o.Valid.Reasons {
			r.Valid.Reasons = append(r.Valid.Reasons, o.Run+": "+reason)
		}
	}
	for _, t := range o.Thresholds {
		t.Threshold = o.Run + ": " + t.Threshold
		r.Thresholds = append(r.Thresholds, t)
	}
	r.addVerdict(o)
}

func (r *Result) addVerdict(o *Result) {
	v, w := &r.Verdict, o.Verdict
	v.Passed = v.Passed && w.Passed
	v.Findings.Merge(w.Findings)
	for i := range v.Findings.List {
		v.Findings.List[i].File = "" // the drawings are beside the results of their runs
	}
	v.Linearity.Keys += w.Linearity.Keys
	v.Linearity.Checked += w.Linearity.Checked
	v.Linearity.Trivial += w.Linearity.Trivial
	v.Linearity.Unknown += w.Linearity.Unknown
	v.Linearity.Broken += w.Linearity.Broken
	if w.AuditNote != "" {
		if v.AuditNote != "" {
			v.AuditNote += "; "
		}
		v.AuditNote += o.Run + ": " + w.AuditNote
	}
	if w.Audit == nil {
		return
	}
	if v.Audit == nil {
		sum := *w.Audit
		v.Audit = &sum
		return
	}
	v.Audit.Keys += w.Audit.Keys
	v.Audit.Rows += w.Audit.Rows
	v.Audit.Acknowledged += w.Audit.Acknowledged
	v.Audit.Unacknowledged += w.Audit.Unacknowledged
	v.Audit.Undelivered += w.Audit.Undelivered
}

// mergeSeries lays the series over each other, in the widest of their slots.
func (r *Result) mergeSeries(all []*Result) {
	width := 1.0
	for _, o := range all {
		width = max(width, o.Series.SlotSeconds)
	}
	for r.Seconds() > width*(maxSlots-1) { // machines whose clocks are far apart
		width *= 2
	}
	n := int(math.Ceil(r.Seconds()/width)) + 1
	s := Series{SlotSeconds: width, Slots: n, Counts: map[measure.Outcome][]int{}, Planned: make([]float64, n), Response: make([]Histogram, n)}
	for _, o := range all {
		offset := o.Started.Sub(r.Started)
		at := func(slot int) int {
			t := offset + time.Duration(float64(slot)*o.Series.SlotSeconds*float64(time.Second))
			return min(max(int(t.Seconds()/width), 0), n-1)
		}
		for outcome, counts := range o.Series.Counts {
			if s.Counts[outcome] == nil {
				s.Counts[outcome] = make([]int, n)
			}
			for i, c := range counts {
				s.Counts[outcome][at(i)] += c
			}
		}
		for i, p := range o.Series.Planned {
			s.Planned[at(i)] += p
		}
		for i, h := range o.Series.Response {
			slot := &s.Response[at(i)]
			if !h.Empty() && slot.Histogram == nil {
				*slot = Wrap(nil)
			}
			slot.add(h)
		}
	}
	r.Series = s
}
