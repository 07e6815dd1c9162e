package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/result"
)

// Text writes a result as plain lines.
func Text(w io.Writer, r *result.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", Title(r))
	writeOutcomes(&b, r)
	t := r.Totals
	fmt.Fprintf(&b, "\nplanned %d  dropped %d + %d follow-ups  sent %d  in %.1fs (%.0f/s)  connections %d  lag p99 %s\n",
		t.Planned, t.DroppedStarts, t.DroppedFollowUps, t.Sent, r.Seconds(), float64(t.Requests)/max(r.Seconds(), 1e-9), t.Dials, result.Duration(r.Lag.At(99)))
	for _, m := range r.Marks {
		fmt.Fprintf(&b, "mark at %.1fs: %s\n", m.Seconds, m.Text)
	}
	b.WriteByte('\n')
	for _, l := range Conclusions(r) {
		fmt.Fprintln(&b, l)
	}
	_, err := io.WriteString(w, b.String())
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// Title says in one line what was run.
func Title(r *result.Result) string {
	p := r.Plan
	how := fmt.Sprintf("closed, %d clients", p.Clients)
	if p.Model == "open" {
		how = fmt.Sprintf("open, %g/s %s", p.Rate, p.Arrivals)
		if p.Shape != "" {
			how += ", " + p.Shape
		}
	}
	title := fmt.Sprintf("%s · %s for %gs · %s · run %s · seed %d", p.Scenario, how, p.Seconds, p.Target, r.Run, p.Seed)
	if r.Label != "" {
		title = r.Label + " · " + title
	}
	return title
}

func writeOutcomes(b *strings.Builder, r *result.Result) {
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(tw, "outcome\tcount\tshare\tp50\tp90\tp99\tp99.9\tmax\tservice p50\tp99\t")
	row := func(name string, n int64, resp, serv result.Histogram) {
		_, _ = fmt.Fprintf(tw, "%s\t%d\t%.2f%%", name, n, 100*float64(n)/float64(max(r.Totals.Requests, 1)))
		for _, p := range []float64{50, 90, 99, 99.9, 100} {
			_, _ = fmt.Fprintf(tw, "\t%s", cell(resp, p))
		}
		_, _ = fmt.Fprintf(tw, "\t%s\t%s\t\n", cell(serv, 50), cell(serv, 99))
	}
	resp, serv := Sum(r)
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		row(o.Outcome.String(), o.Count, o.Response, o.Service)
	}
	row("all", r.Totals.Requests, resp, serv)
	_ = tw.Flush() // into memory
	if r.Plan.Model == "closed" {
		b.WriteString("closed model: a stalled server is hardly sampled; these times are not what customers would see\n")
	} else {
		b.WriteString("times: response, from when a request was due; service, from when it was sent\n")
	}
}

// Sum merges all outcomes in which somebody waited for an answer.
func Sum(r *result.Result) (response, service result.Histogram) {
	response, service = result.Wrap(nil), result.Wrap(nil)
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if o.Outcome == measure.HungUp {
			continue
		}
		if o.Response.Histogram != nil {
			response.Merge(o.Response.Histogram)
		}
		if o.Service.Histogram != nil {
			service.Merge(o.Service.Histogram)
		}
	}
	return response, service
}

func cell(h result.Histogram, p float64) string {
	if h.Empty() {
		return "–"
	}
	return result.Duration(h.At(p))
}

// proven is what a verdict that passed has shown.
func proven(r *result.Result) string {
	switch {
	case r.Verdict.Audit == nil:
		return "the answers of each key agree; what the deployment has was not looked at"
	case r.Verdict.AuditNote != "":
		return "the answers of each key agree; what the deployment has was looked at in part"
	}
	return "one order per key, nothing lost, nothing invented"
}

// unproven says what a verdict that did not pass lacks; "" for one with findings.
func unproven(r *result.Result) string {
	v := r.Verdict
	switch {
	case v.Passed || v.Findings.Total() > 0:
		return ""
	case r.Totals.Requests == 0:
		return "nothing was sent"
	case v.Linearity.Unknown > 0:
		return "the histories of " + count(v.Linearity.Unknown, "key") + " were not decided in time (--check-time)"
	}
	return "the audit could not be made"
}

// made says of a valid run what became of the starts that were planned.
func made(r *result.Result) string {
	t := &r.Totals
	switch {
	case r.Plan.Model == "closed":
		return "the clients were held up by nothing but the answers"
	case t.DroppedStarts+t.DroppedFollowUps > 0:
		return fmt.Sprintf("%d of %d planned starts were made, on time; for the others, and for %d copies, retries or repeats, there was no room",
			t.Planned-t.DroppedStarts, t.Planned, t.DroppedFollowUps)
	}
	return "every planned start was made, on time"
}

// Conclusions are the lines that decide: verdict, validity, thresholds.
func Conclusions(r *result.Result) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	v := r.Verdict
	switch missing := unproven(r); {
	case v.Passed:
		add("VERDICT     passed: %s", proven(r))
	case missing != "":
		add("VERDICT     NOT PROVEN: %s", missing)
	default:
		add("VERDICT     FAILED")
	}
	if a := v.Audit; a != nil {
		add("  audit     by %s: %d keys, %d orders; %d keys answered, %d with an order nobody heard of, %d given up",
			a.Source, a.Keys, a.Rows, a.Acknowledged, a.Unacknowledged, a.Undelivered)
	}
	if v.AuditNote != "" {
		add("  audit     %s", v.AuditNote)
	}
	l := v.Linearity
	add("  history   linearizable: %d keys, %d checked, %d trivial, %d undecided, %d broken", l.Keys, l.Checked, l.Trivial, l.Unknown, l.Broken)
	for _, k := range v.Findings.Kinds() {
		add("  FINDING   %s × %d: %s", k, v.Findings.Counts[k], k.Means())
		shown := 0
		for _, f := range v.Findings.List {
			if f.Kind == k && shown < 3 {
				shown++
				add("              %s %s: %s", f.User, f.Key, f.Detail)
			}
		}
	}
	if r.Valid.Valid {
		add("VALID       yes: %s", made(r))
	} else {
		add("VALID       NO: %s", strings.Join(r.Valid.Reasons, "; "))
	}
	for _, t := range r.Thresholds {
		word := "passed"
		if !t.Passed {
			word = "BROKEN"
		}
		add("THRESHOLD   %s: %s (%s)", word, t.Threshold, t.Actual)
	}
	if r.Interrupted {
		add("INTERRUPTED the run was stopped early and judged as far as it got")
	}
	return lines
}
