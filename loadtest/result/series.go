package result

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
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
