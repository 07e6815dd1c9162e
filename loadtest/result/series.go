package result

import (
	"errors"
	"fmt"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

// maxSlots bounds the length of a series; a long run has wider slots.
const maxSlots = 900

// Series is the run over time. A request counts in the slot in which it ended;
// its times stand in the slot in which it was due, for that is when its customer
// began to wait.
type Series struct {
	SlotSeconds float64                   `json:"slot_seconds"`
	Slots       int                       `json:"slots"`
	Counts      map[measure.Outcome][]int `json:"counts"`
	Planned     []float64                 `json:"planned"`  // intents that were due
	Response    []Histogram               `json:"response"` // of all requests that awaited an answer
}

// coherent tells whether a result from a file can be one of a run: reports and
// merges take their sizes from it.
func (r *Result) coherent() error {
	s := &r.Series
	seen := map[measure.Outcome]bool{}
	requests := int64(0)
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		requests += o.Count
		if seen[o.Outcome] {
			return fmt.Errorf("%s is there twice", o.Outcome)
		}
		seen[o.Outcome] = true
		if times := o.Response.count(); o.Count != times {
			return fmt.Errorf("%s has a count of %d, and %d times", o.Outcome, o.Count, times)
		}
	}
	if requests != r.Totals.Requests {
		return fmt.Errorf("%d requests, and outcomes of %d", r.Totals.Requests, requests)
	}
	if err := r.coherentVerdict(); err != nil {
		return err
	}
	if r.Finished.Before(r.Started) {
		return errors.New("the run ends before it begins")
	}
	if s.Slots < 0 || s.Slots > 2*maxSlots || s.Slots > 0 && s.SlotSeconds <= 0 {
		return fmt.Errorf("a series of %d slots of %g s", s.Slots, s.SlotSeconds)
	}
	if len(s.Planned) > s.Slots || len(s.Response) > s.Slots {
		return errors.New("the series is longer than its slots")
	}
	for outcome, counts := range s.Counts {
		if len(counts) > s.Slots {
			return fmt.Errorf("the series of %s is longer than its slots", outcome)
		}
	}
	return nil
}

// coherentVerdict refuses a verdict that says more than what stands beside it.
func (r *Result) coherentVerdict() error {
	v := &r.Verdict
	for kind, n := range v.Findings.Counts {
		if n < 1 {
			return fmt.Errorf("%d findings of %s", n, kind)
		}
	}
	listed := map[verdict.Kind]int{}
	for i := range v.Findings.List {
		listed[v.Findings.List[i].Kind]++
	}
	for kind, n := range listed {
		if n > v.Findings.Counts[kind] {
			return fmt.Errorf("%d findings of %s are listed, %d are counted", n, kind, v.Findings.Counts[kind])
		}
	}
	switch l := v.Linearity; {
	case !v.Passed:
	case v.Findings.Total() > 0 || l.Broken > 0:
		return errors.New("the verdict is passed, and there are findings")
	case l.Unknown > 0:
		return errors.New("the verdict is passed, and there are histories that were not decided")
	case v.Audit == nil && v.AuditNote == "":
		return errors.New("the verdict is passed, and there was no audit")
	}
	if r.Valid.Valid && len(r.Valid.Reasons) > 0 {
		return errors.New("the run is valid, and there are reasons why it is not")
	}
	return nil
}

// NewSeries lays out the history of a run over time.
func NewSeries(cases []*history.Case, planned func(time.Duration) float64) Series {
	var end time.Duration
	for _, c := range cases {
		for _, r := range c.Records() {
			end = max(end, r.Done)
		}
	}
	slot := time.Second
	for end/slot >= maxSlots {
		slot *= 2
	}
	n := int(end/slot) + 1
	s := Series{SlotSeconds: slot.Seconds(), Slots: n, Counts: map[measure.Outcome][]int{}, Planned: make([]float64, n), Response: make([]Histogram, n)}
	times := make([]*hdr.Histogram, n)
	for i := range times {
		times[i] = measure.NewHistogram()
		s.Planned[i] = planned(time.Duration(i)*slot) * slot.Seconds()
	}
	for _, c := range cases {
		for _, r := range c.Records() {
			if s.Counts[r.Outcome] == nil {
				s.Counts[r.Outcome] = make([]int, n)
			}
			s.Counts[r.Outcome][r.Done/slot]++
			if r.Outcome != measure.HungUp {
				measure.Record(times[max(r.Due, 0)/slot], r.Done-r.Due)
			}
		}
	}
	for i := range times {
		s.Response[i] = Wrap(times[i])
	}
	return s
}
