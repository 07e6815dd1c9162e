//go:build unix

package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

const schema = "oncegate.bench/1"

// Report is what a bench found.
type Report struct {
	Schema      string        `json:"schema"`
	Started     time.Time     `json:"started"`
	Version     string        `json:"version"`
	Rounds      int           `json:"rounds"`
	Window      time.Duration `json:"window_ns"`
	Connections []int         `json:"connections"`
	Records     int64         `json:"records,omitempty"`
	Environment Environment   `json:"environment"`
	Rows        []Row         `json:"rows"`
	Sheets      []Sheet       `json:"sheets,omitempty"` // of the paths that are no comparison
}

// Row is a path at a number of connections.
type Row struct {
	ID          string    `json:"id"`
	Path        string    `json:"path"`
	Connections int       `json:"connections"`
	Unit        unit      `json:"unit"`
	Subject     Side      `json:"subject"`
	Baseline    Side      `json:"baseline"`
	Ratios      []float64 `json:"ratios"` // of each round
	Ratio       float64   `json:"ratio"`  // their median
	Min         float64   `json:"min"`
	Max         float64   `json:"max"`
	// Low and High enclose the true median; see interval.
	Low    float64  `json:"low"`
	High   float64  `json:"high"`
	Target *Target  `json:"target,omitempty"`
	Met    Met      `json:"met"`
	Notes  []string `json:"notes,omitempty"`
}

// Side is what one side of a row came to.
type Side struct {
	Name    string    `json:"name"`
	Values  []float64 `json:"values"` // of each round, in the row's unit; times in seconds
	Median  float64   `json:"median"`
	Samples []Sample  `json:"samples"`
}

func (s *Side) add(u unit, sample Sample) {
	value := sample.PerSecond
	if u == halfway {
		value = sample.P50.Seconds()
	}
	s.Values = append(s.Values, value)
	s.Samples = append(s.Samples, sample)
	s.Median = median(s.Values)
}

func (r *Row) conclude() {
	r.Ratios = pairs(r.Subject.Values, r.Baseline.Values)
	r.Ratio = median(r.Ratios)
	r.Min, r.Max = slices.Min(r.Ratios), slices.Max(r.Ratios)
	r.Low, r.High = interval(r.Ratios)
	r.Met = r.Target.judge(r.Low, r.High)
}

// Write writes the report as JSON.
func (r *Report) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
