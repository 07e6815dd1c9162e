package observability_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/deploy/observability"
)

func TestMetricsOfAnExpression(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string][]string{
		`up{job="oncegate"} == 0`: {"up"},
		`sum by (le, outcome) (rate(a_bucket{x=~"b_total|c"}[5m])) / on () group_left (d) e:f:rate1h > 0.5 and on () g`: {"a_bucket", "e:f:rate1h", "g"},
		`histogram_quantile(0.99, sum by (le) (rate(a_bucket[5m] offset 1h))) > 1e3`:                                    {"a_bucket"},
		`max(a) != min(b) or absent(c) > bool 1`:                                                                        {"a", "b", "c"},
		`sum(a{b="c\"d{e"}) without (f) unless count(a) by (g)`:                                                         {"a"},
	} {
		require.Equal(t, want, observability.Query{Expr: expr}.Metrics(), expr)
	}
}

func TestTheDashboardIsWhole(t *testing.T) {
	t.Parallel()
	d, err := observability.ReadDashboard()
	require.NoError(t, err)
	require.Equal(t, "oncegate", d.UID)
	ids := map[int]bool{}
	for i, p := range d.Panels {
		require.False(t, ids[p.ID], "panel id %d twice", p.ID)
		ids[p.ID] = true
		require.NotEmpty(t, p.Title)
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		for _, other := range d.Panels[:i] {
			a, b := p.GridPos, other.GridPos
			apart := a.X >= b.X+b.W || b.X >= a.X+a.W || a.Y >= b.Y+b.H || b.Y >= a.Y+a.H
			require.True(t, apart, "%s lies on %s", p.Title, other.Title)
		}
	}
	queries, err := observability.Queries()
	require.NoError(t, err)
	for _, q := range queries {
		require.NotContains(t, q.Expr, "$", q.Where)
		require.NotEmpty(t, q.Metrics(), q.Where)
	}
}

// Whoever is called by an alert looks at the dashboard first.
func TestTheDashboardShowsWhatAlertsAreAbout(t *testing.T) {
	t.Parallel()
	queries, err := observability.Queries()
	require.NoError(t, err)
	shown := map[string]bool{"up": true} // Prometheus' own
	for _, q := range queries {
		if strings.HasPrefix(q.Where, "rule ") {
			continue
		}
		for _, name := range q.Metrics() {
			shown[name] = true
		}
	}
	for _, q := range queries {
		for _, name := range q.Metrics() {
			require.True(t, shown[name] || strings.HasPrefix(name, "oncegate:"), "%s is about %s, which no panel shows", q.Where, name)
		}
	}
}

// heading is how Markdown viewers name the place of a heading.
func heading(title string) string {
	return regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(title), "")
}

func TestEveryAlertHasAPageInTheRunbook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/runbook.md")
	require.NoError(t, err)
	pages := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		pages[heading(title)] = body
	}
	rules, err := observability.Rules()
	require.NoError(t, err)
	alerts := 0
	for _, r := range rules {
		if r.Alert == "" {
			require.True(t, strings.HasPrefix(r.Record, "oncegate:"), r.Record)
			continue
		}
		alerts++
		anchor := strings.ToLower(r.Alert)
		require.Equal(t, "docs/runbook.md#"+anchor, r.Annotations["runbook_url"])
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.Contains(t, []string{"page", "ticket"}, r.Labels["severity"], r.Alert)
		page, ok := pages[anchor]
		require.True(t, ok, "the runbook has no page %s", r.Alert)
		for _, part := range []string{"**Means.**", "**Look.**", "**Do.**"} {
			require.Contains(t, page, part, r.Alert)
		}
		delete(pages, anchor)
	}
	require.Greater(t, alerts, 20)
	for page := range pages {
		require.NotContains(t, page, "oncegate", "a page for an alert that is not there")
	}
}
