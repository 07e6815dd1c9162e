package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/oncegate/oncegate/loadtest/result"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

//go:embed assets
var assets embed.FS

// page is what the template shows.
type page struct {
	R                        *result.Result
	Title                    string
	State                    string // passed, failed or invalid
	Headline                 string
	Ladder                   []string
	Findings                 []group
	Rows                     []ladderRow
	Data                     chartData
	Style, ChartStyle        template.CSS
	ChartScript, OwnScript   template.JS
	Started, Seconds, PerSec string
	Behaviours               []share
	Policy, Made             string
}

type ladderRow struct {
	Name, Count, Share string
	Response, Service  []string
}

// group is the findings of one kind.
type group struct {
	Kind        verdict.Kind
	Count       int
	First, More []verdict.Finding
}

const shownFindings = 3

func (p *page) addFindings() {
	f := &p.R.Verdict.Findings
	for _, k := range f.Kinds() {
		g := group{Kind: k, Count: f.Counts[k]}
		for _, x := range f.List {
			switch {
			case x.Kind != k:
			case len(g.First) < shownFindings:
				g.First = append(g.First, x)
			default:
				g.More = append(g.More, x)
			}
		}
		p.Findings = append(p.Findings, g)
	}
}

type share struct {
	Name  string
	Count int64
}

// chartData is what the charts draw: seconds, and one list for each line.
type chartData struct {
	At       []float64     `json:"at"`
	Outcomes []chartSeries `json:"outcomes"` // requests per second that ended
	Planned  []float64     `json:"planned"`  // intents per second; null when closed
	P50      []any         `json:"p50"`      // milliseconds; null where nothing was due
	P99      []any         `json:"p99"`
	Max      []any         `json:"max"`
	Marks    []result.Mark `json:"marks"`
}

type chartSeries struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
}

// HTML writes a result as one self-contained page.
func HTML(w io.Writer, r *result.Result) error {
	t, err := template.New("report.html").ParseFS(assets, "assets/report.html")
	if err != nil {
		return fmt.Errorf("the report's template: %w", err)
	}
	texts := map[string]string{}
	for _, name := range []string{"report.css", "report.js", "uplot.min.css", "uplot.iife.min.js", "uplot.LICENSE"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return fmt.Errorf("the report's parts: %w", err)
		}
		texts[name] = string(b)
	}
	p := page{
		R: r, Title: Title(r), Data: chart(r),
		Style:       template.CSS(texts["report.css"]),                                                  //nolint:gosec // G203: our own file
		ChartStyle:  template.CSS(texts["uplot.min.css"]),                                               //nolint:gosec // G203: our own file
		ChartScript: template.JS("/*\n" + texts["uplot.LICENSE"] + "*/\n" + texts["uplot.iife.min.js"]), //nolint:gosec // G203: our own files
		OwnScript:   template.JS(texts["report.js"]),                                                    //nolint:gosec // G203: our own file
		Started:     r.Started.UTC().Format(time.RFC3339),
		Seconds:     fmt.Sprintf("%.1f", r.Seconds()),
		PerSec:      fmt.Sprintf("%.0f", float64(r.Totals.Requests)/max(r.Seconds(), 1e-9)),
		Policy:      string(r.Environment.Policy),
		Made:        made(r),
	}
	p.State, p.Headline = headline(r)
	p.addRows()
	p.addFindings()
	for name, n := range r.Behaviours {
		p.Behaviours = append(p.Behaviours, share{name, n})
	}
	slices.SortFunc(p.Behaviours, func(a, b share) int { return int(b.Count - a.Count) })
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func headline(r *result.Result) (state, text string) {
	broken := 0
	for _, t := range r.Thresholds {
		if !t.Passed {
			broken++
		}
	}
	switch missing := unproven(r); {
	case missing != "":
		return "failed", "Not proven: " + missing
	case !r.Verdict.Passed:
		return "failed", "Failed: " + count(r.Verdict.Findings.Total(), "broken promise")
	case !r.Valid.Valid:
		return "invalid", "Not valid: the promises were kept, the numbers may not be believed"
	case broken > 0:
		return "failed", "Failed: " + count(broken, "broken threshold")
	}
	return "passed", "Passed: " + proven(r)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (p *page) addRows() {
	for _, q := range result.Ladder() {
		name := fmt.Sprintf("p%g", q)
		if q == 100 {
			name = "max"
		}
		p.Ladder = append(p.Ladder, name)
	}
	row := func(name string, n int64, resp, serv result.Histogram) {
		l := ladderRow{Name: name, Count: fmt.Sprint(n), Share: fmt.Sprintf("%.2f%%", 100*float64(n)/float64(max(p.R.Totals.Requests, 1)))}
		for _, q := range result.Ladder() {
			l.Response = append(l.Response, cell(resp, q))
			l.Service = append(l.Service, cell(serv, q))
		}
		p.Rows = append(p.Rows, l)
	}
	for i := range p.R.Outcomes {
		o := &p.R.Outcomes[i]
		row(o.Outcome.String(), o.Count, o.Response, o.Service)
	}
	resp, serv := Sum(p.R)
	row("all", p.R.Totals.Requests, resp, serv)
}

func chart(r *result.Result) chartData {
	s := &r.Series
	d := chartData{Marks: r.Marks}
	if d.Marks == nil {
		d.Marks = []result.Mark{}
	}
	for i := range s.Slots {
		d.At = append(d.At, float64(i)*s.SlotSeconds)
		h := result.Histogram{}
		if i < len(s.Response) {
			h = s.Response[i]
		}
		d.P50, d.P99, d.Max = append(d.P50, ms(h, 50)), append(d.P99, ms(h, 99)), append(d.Max, ms(h, 100))
	}
	if r.Plan.Model == "open" {
		for _, n := range s.Planned {
			d.Planned = append(d.Planned, n/s.SlotSeconds)
		}
	}
	for i := range r.Outcomes {
		c := chartSeries{Name: r.Outcomes[i].Outcome.String()}
		for _, n := range s.Counts[r.Outcomes[i].Outcome] {
			c.Values = append(c.Values, float64(n)/s.SlotSeconds)
		}
		d.Outcomes = append(d.Outcomes, c)
	}
	return d
}

func ms(h result.Histogram, p float64) any {
	if h.Empty() {
		return nil
	}
	return float64(h.At(p).Microseconds()) / 1000
}
