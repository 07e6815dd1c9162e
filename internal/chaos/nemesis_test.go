//go:build linux

package chaos

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

// The flags of a run. Their defaults are for a run among all other tests.
var (
	runFor   = flag.Duration("for", 20*time.Second, "length of the faults, of all engines together")
	runSeed  = flag.Uint64("seed", 0, "seed of the faults and of the traffic; 0 draws one")
	runRate  = flag.Float64("rate", 30, "customers per second")
	onEngine = flag.String("engine", "", "MySQL or MariaDB; both if empty")
	flawed   = flag.String("flaw", "", "a mistake to build in, of those in the flaws_on.go files")
	soakFor  = flag.Duration("soak", 0, "length of the soak; without it there is none")
	only     = flag.String("only", "", "only faults whose names contain this")
)

// TestNothingIsLostOrDoubledUnderFaults: several gateways, customers who insist,
// and faults drawn from a seed; then what was answered is judged.
func TestNothingIsLostOrDoubledUnderFaults(t *testing.T) { //nolint:paralleltest // a run has the machine to itself
	seed := *runSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	names := []string{"MySQL", "MariaDB"}
	if *onEngine != "" {
		names = []string{*onEngine}
	}
	faults := slices.DeleteFunc(allFaults(), func(f fault) bool { return !strings.Contains(f.name, *only) })
	require.NotEmpty(t, faults)
	for _, engine := range names { //nolint:paralleltest // as above
		t.Run(engine, func(t *testing.T) {
			length := *runFor / time.Duration(len(names))
			t.Logf("seed %d, %v; repeat with -engine %s -for %v -seed %d", seed, length, engine, length, seed)
			w := newWorld(t, engine, nemesisProgram(t))
			w.run(seed, draw(seed, length, faults))
		})
	}
}

// nemesisProgram is the gateway without anything that a test needs, unless it is
// to make a mistake.
func nemesisProgram(t *testing.T) string {
	t.Helper()
	if *flawed != "" {
		return gatewayProgram(t, "seededbugs")
	}
	return gatewayProgram(t, "")
}

// run has the faults happen under traffic, and judges.
func (w *world) run(seed uint64, plan []step) {
	t := w.t
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run := fmt.Sprintf("s%x", seed&0xffffffff)
	tr := w.begin(ctx, run, seed, *runRate)
	injected := map[string]int{}
	for _, s := range plan {
		if t.Failed() {
			break
		}
		w.suffer(ctx, s, injected)
	}
	cancel() // nobody new comes
	w.heal()
	cases := tr.finish()
	w.requireAnswers(cases)
	j := w.judge(tr, cases, verdict.Scope{KeyPrefix: scenario.KeyPrefix(run), OwnUsers: true})
	w.report(cases, injected, &j)
	w.requireConserved()
	if !w.ownClocks { // a mark lives for as long as the clock went back after it was made
		w.requireNoMarks()
	}
	w.requireNothingLeft()
}

// suffer lets one step happen, and reports how many of its faults did.
func (w *world) suffer(ctx context.Context, s step, injected map[string]int) (faults int) {
	w.t.Logf("%s", s)
	var ends []func()
	for _, e := range s.events {
		if end := e.fault.begin(w, e); end != nil {
			injected[e.fault.name]++
			ends = append(ends, end)
		}
	}
	pause(ctx, s.hold)
	for _, end := range slices.Backward(ends) {
		end()
	}
	w.revive()
	pause(ctx, s.gap)
	return len(ends)
}

// report says what happened, and fails with what must not have.
func (w *world) report(cases []*history.Case, injected map[string]int, j *judged) {
	requests, answers := 0, map[string]int{}
	for _, c := range cases {
		for _, r := range c.Records() {
			if r.Op == history.Status && r.HTTP == 0 {
				continue // the read of the database at the end
			}
			requests++
			answers[r.Outcome.String()]++
		}
	}
	met := w.met()
	total := 0
	for _, n := range injected {
		total += n
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %d requests for %d keys; %d faults of %d kinds\n", w.engine, w.database.Version, requests, len(cases), total, len(injected))
	fmt.Fprintf(&b, "answers: %s\nfaults: %s\n", counts(answers), counts(injected))
	fmt.Fprintf(&b, "met by the ledgers since their last start: %s\n", counts(met))
	fmt.Fprintf(&b, "gateways' clocks: %d jumps shown, %d payments refused for one\n", w.clocks.shown.Load(), w.clocks.refused)
	fmt.Fprintf(&b, "rows: %d; keys with a success heard: %d, with an unheard one: %d\n", j.audit.Rows, j.audit.Acknowledged, j.audit.Unacknowledged)
	fmt.Fprintf(&b, "histories checked: %d, trivial: %d, not decided in time: %d; violations: %d",
		j.linearity.Checked, j.linearity.Trivial, j.linearity.Unknown, j.findings.Total())
	w.t.Log(b.String())
	for _, f := range j.findings.List {
		w.t.Errorf("%s: key %s of %s: %s", f.Kind, f.Key, f.User, f.Detail)
	}
	require.Zero(w.t, j.linearity.Unknown, "every history was decided")
}

// counts writes a tally, the most frequent first.
func counts(tally map[string]int) string {
	names := slices.SortedFunc(maps.Keys(tally), func(a, b string) int {
		if tally[a] != tally[b] {
			return tally[b] - tally[a]
		}
		return strings.Compare(a, b)
	})
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%s %d", name, tally[name])
	}
	return strings.Join(parts, ", ")
}
