package loadtest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/mark"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/result"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

// leastSent is the share of the planned starts below which a run does not show
// what it was asked to show.
const leastSent = 0.99

// leastServed is the share of the keys below which a run shows little of orders: most
// customers went away without one, and not because all was sold.
const leastServed = 0.5

// result gathers the numbers of the run; the verdict is still to come.
func (r *run) result(cases []*history.Case) *result.Result {
	times := r.recorder.Times()
	out := &result.Result{
		Schema: result.Schema, Run: r.Run, Label: r.Label, Started: r.driver.Start().UTC(),
		Plan: r.describe(), Environment: environment(r.Version, r.policy),
		Behaviours: map[string]int64{}, Lag: result.Wrap(times.Lag), Interrupted: r.interrupted,
		Marks: []result.Mark{}, Thresholds: []result.ThresholdCheck{}, Outcomes: []result.OutcomeResult{},
	}
	var last time.Duration
	for _, c := range cases {
		out.Behaviours[c.Intent.Behaviour.Name]++
		for _, rec := range c.Records() {
			last = max(last, rec.Done)
			if rec.Proof == history.NeverSent {
				out.Totals.DialFaults++
			}
		}
	}
	out.Finished = out.Started.Add(last)
	for _, o := range measure.Outcomes() {
		h := times.Response[o]
		if h == nil {
			continue
		}
		out.Outcomes = append(out.Outcomes, result.OutcomeResult{
			Outcome: o, Count: h.TotalCount(), Response: result.Wrap(h), Service: result.Wrap(times.Service[o]),
		})
		out.Totals.Requests += h.TotalCount()
	}
	t := &out.Totals
	t.Planned, t.DroppedStarts, t.DroppedFollowUps = r.progress.Planned, r.progress.DroppedStarts, r.progress.DroppedFollowUps
	t.Sent, t.Dials, t.Stale = r.sent.Sent-r.sentAt.Sent, r.sent.Dials-r.sentAt.Dials, r.sent.Stale-r.sentAt.Stale
	if o := out.Outcome(measure.ClientLimit); o != nil {
		t.ClientLimits = o.Count
	}
	planned := r.plan.Rate
	if r.Clients > 0 {
		planned = func(time.Duration) float64 { return 0 }
	}
	out.Series = result.NewSeries(cases, planned)
	out.Valid = r.validity(out, verdict.CountServed(cases))
	r.addMarks(out)
	return out
}

func (r *run) validity(out *result.Result, served verdict.Served) result.Validity {
	t := out.Totals
	v := result.Validity{Reasons: []string{}}
	add := func(format string, args ...any) { v.Reasons = append(v.Reasons, fmt.Sprintf(format, args...)) }
	switch {
	case t.Requests == 0:
		add("nothing was sent")
	case out.Outcome(measure.Created) == nil && out.Outcome(measure.Replayed) == nil:
		add("nobody was answered with an order: the run shows nothing of orders")
	case float64(served.Ordered+served.SoldOut) < leastServed*float64(served.Keys):
		add("%d of %d keys were answered with an order: the run shows little of orders", served.Ordered, served.Keys)
	}
	if served.Refused > served.Ordered {
		add("%d keys were refused for a balance or a number: users need accounts that last (--create-users, --balance)", served.Refused)
	}
	if made := t.Planned - t.DroppedStarts; float64(made) < leastSent*float64(t.Planned) {
		add("%d of %d planned starts were made (%.1f%%): there was room for %d requests at once", made, t.Planned, 100*float64(made)/float64(t.Planned), r.MaxInFlight)
	}
	if t.DroppedFollowUps*100 > t.Requests {
		add("%d copies, retries or repeats found no room", t.DroppedFollowUps)
	}
	if lag := out.Lag.At(99); r.Clients == 0 && lag > r.MaxLag {
		add("the load generator was late: p99 of its lag is %s, the bound is %s", result.Duration(lag), result.Duration(r.MaxLag))
	}
	if t.ClientLimits > 0 {
		add("limited by this machine: %d requests found no port or socket here", t.ClientLimits)
	}
	switch {
	case !r.drained && r.interrupted:
		// They are no sample of any time, and would have been the slowest.
		add("requests were still under way when the run was interrupted and were broken off")
	case !r.drained:
		add("requests were still under way %s after the last start and were broken off", r.Drain)
	}
	v.Valid = len(v.Reasons) == 0
	return v
}

func (r *run) describe() result.Plan {
	p := result.Plan{
		Target: r.Target.Redacted(), Scenario: r.Scenario.Name, Description: r.Scenario.Description,
		Model: "open", Arrivals: "even", Rate: r.Shape.Rate, Seconds: r.Shape.Length.Seconds(),
		Seed: r.Seed, Users: len(r.Users), TimeoutMS: r.Timeout.Milliseconds(), MaxInFlight: r.MaxInFlight,
	}
	if r.Poisson {
		p.Arrivals = "poisson"
	}
	if r.Clients > 0 {
		p.Model, p.Arrivals, p.Rate, p.Clients = "closed", "", 0, r.Clients
		return p
	}
	if r.Shape.Ramp > 0 {
		p.Shape = "ramp " + r.Shape.Ramp.String()
	}
	for _, s := range r.Shape.Spikes {
		if p.Shape != "" {
			p.Shape += ", "
		}
		p.Shape += fmt.Sprintf("spike %g× at %s for %s", s.Factor, s.Start, s.Length)
	}
	return p
}

func (r *run) addMarks(out *result.Result) {
	if r.MarksFile == "" {
		return
	}
	marks, err := mark.Read(r.MarksFile, out.Started, out.Finished)
	if err != nil {
		marks = []mark.Mark{{At: out.Started, Text: err.Error()}}
	}
	slices.SortFunc(marks, func(a, b mark.Mark) int { return a.At.Compare(b.At) })
	for _, m := range marks {
		out.Marks = append(out.Marks, result.Mark{Seconds: m.At.Sub(out.Started).Seconds(), Text: m.Text})
	}
}

func environment(version string, policy []byte) result.Environment {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return result.Environment{
		Host: host, OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		Go: runtime.Version(), Version: version, Policy: policy,
	}
}
