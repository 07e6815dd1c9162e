package main

import (
	"regexp"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/deploy/observability"
)

var (
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
)

// Every series that a rule or a panel picks by its labels is in the scrape of a
// gateway that has done nothing yet. One that appeared only with the first event
// would hide it: an increase is counted from what was there before. And a label
// value that does not exist picks nothing, for ever.
func TestEverySeriesThatIsPickedIsThereFromTheStart(t *testing.T) {
	t.Parallel()
	g, _, _ := observed(t, true)
	families := scrape(t, g)
	queries, err := observability.Queries()
	require.NoError(t, err)
	picked := 0
	for _, q := range queries {
		for _, s := range selector.FindAllStringSubmatch(q.Expr, -1) {
			name, matchers := s[1], matcher.FindAllStringSubmatch(s[2], -1)
			family := families[name]
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if family == nil {
					family = families[strings.TrimSuffix(name, suffix)]
				}
			}
			if name == "up" {
				continue
			}
			require.NotNil(t, family, "%s: %s", q.Where, name)
			for _, m := range matchers {
				label, kind, value := m[1], m[2], m[3]
				if label == "job" || label == "instance" {
					continue // Prometheus' own
				}
				picked++
				wanted := []string{value}
				if kind == "=~" || kind == "!~" {
					wanted = strings.Split(value, "|")
				}
				for _, want := range wanted {
					require.True(t, hasSeries(family, label, want), "%s: no series of %s has %s=%q", q.Where, name, label, want)
				}
			}
		}
	}
	require.Greater(t, picked, 20)
}

func hasSeries(family *dto.MetricFamily, label, value string) bool {
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == label && l.GetValue() == value {
				return true
			}
		}
	}
	return false
}
