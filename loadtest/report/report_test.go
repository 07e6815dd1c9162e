package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/result"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

func sample() *result.Result {
	h := measure.NewHistogram()
	measure.Record(h, 3*time.Millisecond)
	start := time.Date(2026, 8, 27, 9, 0, 0, 0, time.UTC)
	return &result.Result{
		Schema: result.Schema, Run: "abc", Started: start, Finished: start.Add(time.Second),
		Plan:     result.Plan{Scenario: "mixed", Model: "open", Rate: 5, Arrivals: "even", Seconds: 1, Target: "http://x"},
		Totals:   result.Totals{Planned: 1, Requests: 1, Sent: 1},
		Outcomes: []result.OutcomeResult{{Outcome: measure.Created, Count: 1, Response: result.Wrap(h), Service: result.Wrap(h)}},
		Series: result.Series{
			SlotSeconds: 1, Slots: 2, Counts: map[measure.Outcome][]int{measure.Created: {1, 0}},
			Planned: []float64{5, 0}, Response: []result.Histogram{result.Wrap(h), result.Wrap(nil)},
		},
		Marks:   []result.Mark{{Seconds: 0.5, Text: "</script><b>redis down"}},
		Verdict: result.Verdict{Passed: true, Audit: &verdict.Summary{Source: "http", Keys: 1, Rows: 1}}, Valid: result.Validity{Valid: true}, Lag: result.Wrap(nil),
	}
}

func TestThePageNeedsNothingElse(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, HTML(&b, sample()))
	page := b.String()
	require.NotContains(t, page, `src="`)
	require.NotContains(t, page, `<link`)
	require.NotContains(t, page, "</script><b>", "a mark must not become markup")
	require.Contains(t, page, "Passed: one order per key")
	require.Contains(t, page, "Leon Sorokin", "the licence goes with the code")
}

func TestTheWorstComesFirst(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*result.Result){
		"Failed: 1 broken promise": func(r *result.Result) {
			r.Verdict.Passed = false
			r.Verdict.Findings = verdict.Findings{Counts: map[verdict.Kind]int{verdict.Lost: 1}, List: []verdict.Finding{{Kind: verdict.Lost, Key: "k", Detail: "gone"}}}
		},
		"Not proven: the audit": func(r *result.Result) { r.Verdict.Passed = false },
		"Not proven: the histories of 2 keys": func(r *result.Result) {
			r.Verdict.Passed, r.Verdict.Linearity.Unknown = false, 2
		},
		"Passed: the answers of each key agree; what the deployment has was looked at in part": func(r *result.Result) {
			r.Verdict.AuditNote = "not all of it"
		},
		"Passed: the answers of each": func(r *result.Result) { r.Verdict.Audit = nil },
		"Not valid":                   func(r *result.Result) { r.Valid = result.Validity{Reasons: []string{"late"}} },
		"Failed: 2 broken thresholds": func(r *result.Result) { r.Thresholds = make([]result.ThresholdCheck, 2) },
	} {
		r := sample()
		change(r)
		var page, text bytes.Buffer
		require.NoError(t, HTML(&page, r))
		require.NoError(t, Text(&text, r))
		head, _, _ := strings.Cut(page.String(), "</h1>")
		require.Contains(t, head, "<h1>"+want)
		require.Equal(t, want == "Not valid" || strings.Contains(want, "threshold"), strings.Contains(text.String(), "nothing lost"), want)
	}
}

func TestAValidRunSaysWhatWasNotMade(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*result.Result){
		"every planned start was made, on time":         func(*result.Result) {},
		"held up by nothing but the answers":            func(r *result.Result) { r.Plan.Model = "closed" },
		"999 of 1000 planned starts were made, on time": func(r *result.Result) { r.Totals.Planned, r.Totals.DroppedStarts = 1000, 1 },
		"for 3 copies, retries or repeats":              func(r *result.Result) { r.Totals.DroppedFollowUps = 3 },
	} {
		r := sample()
		change(r)
		var page, text bytes.Buffer
		require.NoError(t, HTML(&page, r))
		require.NoError(t, Text(&text, r))
		require.Contains(t, text.String(), want)
		require.Contains(t, page.String(), want)
	}
}

func TestTextTellsWhatDecides(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Verdict.Passed = false
	r.Verdict.Findings = verdict.Findings{Counts: map[verdict.Kind]int{verdict.Lost: 1}, List: []verdict.Finding{{Kind: verdict.Lost, Key: "k", Detail: "gone"}}}
	r.Thresholds = []result.ThresholdCheck{{Threshold: "p99(created)<1ms", Actual: "3.00ms"}}
	var b bytes.Buffer
	require.NoError(t, Text(&b, r))
	for _, want := range []string{"FAILED", "lost × 1", "gone", "BROKEN: p99(created)<1ms (3.00ms)", "created"} {
		require.Contains(t, b.String(), want)
	}
}
