package result

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

// Schema names the form of the file.
const Schema = "oncegate.loadtest/1"

// Result is everything a run found out.
type Result struct {
	Schema      string           `json:"schema"`
	Run         string           `json:"run"`
	Label       string           `json:"label,omitempty"`
	Started     time.Time        `json:"started"`
	Finished    time.Time        `json:"finished"` // the last answer
	Plan        Plan             `json:"plan"`
	Environment Environment      `json:"environment"`
	Totals      Totals           `json:"totals"`
	Outcomes    []OutcomeResult  `json:"outcomes"`
	Behaviours  map[string]int64 `json:"behaviours"` // intents
	Series      Series           `json:"series"`
	Marks       []Mark           `json:"marks"`
	Verdict     Verdict          `json:"verdict"`
	Valid       Validity         `json:"validity"`
	Thresholds  []ThresholdCheck `json:"thresholds"`
	Interrupted bool             `json:"interrupted"`
	Merged      []string         `json:"merged,omitempty"` // names of the runs in this file
	Lag         Histogram        `json:"lag"`
}

// Plan is what was asked for.
type Plan struct {
	Target      string  `json:"target"`
	Scenario    string  `json:"scenario"`
	Description string  `json:"description"`
	Model       string  `json:"model"` // open or closed
	Arrivals    string  `json:"arrivals,omitempty"`
	Rate        float64 `json:"rate,omitempty"` // intents per second
	Clients     int     `json:"clients,omitempty"`
	Seconds     float64 `json:"seconds"`
	Shape       string  `json:"shape,omitempty"`
	Seed        uint64  `json:"seed"`
	Users       int     `json:"users"`
	TimeoutMS   int64   `json:"timeout_ms"`
	MaxInFlight int     `json:"max_in_flight"`
}

// Environment is where the load came from, and what the target says of itself.
type Environment struct {
	Host       string          `json:"host"`
	OS         string          `json:"os"`
	CPUs       int             `json:"cpus"`
	GOMAXPROCS int             `json:"gomaxprocs"`
	Go         string          `json:"go"`
	Version    string          `json:"version"`
	Policy     json.RawMessage `json:"target_policy,omitempty"` // GET /api/policy
}

// Totals are the counts of a run.
type Totals struct {
	Planned          int64 `json:"planned"` // starts that were due
	DroppedStarts    int64 `json:"dropped_starts"`
	DroppedFollowUps int64 `json:"dropped_follow_ups"`
	Requests         int64 `json:"requests"` // attempted: sent, or stopped by a limit or a refused connection
	Sent             int64 `json:"sent"`     // handed to the kernel whole
	Dials            int64 `json:"dials"`
	Stale            int64 `json:"stale_connections"`
	ClientLimits     int64 `json:"client_limits"`
	DialFaults       int64 `json:"never_sent"`
}

// OutcomeResult is one outcome with both its times.
type OutcomeResult struct {
	Outcome  measure.Outcome `json:"outcome"`
	Count    int64           `json:"count"`
	Response Histogram       `json:"response"`
	Service  Histogram       `json:"service"`
}

// Mark is something that happened during the run.
type Mark struct {
	Seconds float64 `json:"seconds"` // since the start
	Text    string  `json:"text"`
}

// Verdict is what the judges say.
type Verdict struct {
	Passed    bool              `json:"passed"`
	Audit     *verdict.Summary  `json:"audit"`                // null: no audit was made
	AuditNote string            `json:"audit_note,omitempty"` // what was not looked at, and why
	Linearity verdict.Linearity `json:"linearity"`
	Findings  verdict.Findings  `json:"findings"`
}

// Validity says whether the numbers may be believed.
type Validity struct {
	Valid   bool     `json:"valid"`
	Reasons []string `json:"reasons"`
}

// Passed reports whether nothing is wrong with a result.
func (r *Result) Passed() bool {
	for _, t := range r.Thresholds {
		if !t.Passed {
			return false
		}
	}
	return r.Verdict.Passed && r.Valid.Valid
}

// Outcome returns the numbers of one outcome; nil when it did not occur.
func (r *Result) Outcome(o measure.Outcome) *OutcomeResult {
	for i := range r.Outcomes {
		if r.Outcomes[i].Outcome == o {
			return &r.Outcomes[i]
		}
	}
	return nil
}

// Seconds is how long the run lasted, the last answers included.
func (r *Result) Seconds() float64 { return r.Finished.Sub(r.Started).Seconds() }

// Write writes the file.
func (r *Result) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// Read reads a file and refuses other schemas.
func Read(path string) (*Result, error) {
	b, err := os.ReadFile(path) //nolint:gosec // G304: the path is the operator's own
	if err != nil {
		return nil, fmt.Errorf("read a result: %w", err) // it names the path
	}
	r, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Parse reads the bytes of a file and refuses other schemas.
func Parse(b []byte) (*Result, error) {
	var r Result
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("read a result: %w", err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("read a result: the schema is %q, this program knows %q", r.Schema, Schema)
	}
	if err := r.coherent(); err != nil {
		return nil, fmt.Errorf("read a result: %w", err)
	}
	return &r, nil
}
