package observability_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/oncegate/oncegate/deploy/observability"
	"github.com/oncegate/oncegate/internal/testserver"
)

// promtool runs the program that comes with Prometheus, which is installed
// where that can be done without asking anybody.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	there := func() bool {
		_, err := exec.LookPath("promtool")
		return err == nil
	}
	if err := testserver.InstallPackages(ctx, there, "prometheus"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no promtool: %v", err)
		}
		t.Skipf("no promtool: %v", err)
	}
	out, err := exec.CommandContext(ctx, "promtool", args...).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "SUCCESS", string(out))
}

func TestRulesFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", "rules.yaml")
	promtool(t, "test", "rules", "rules_test.yaml", "rules_days_test.yaml")
}

// TestEveryExpressionIsPromQL has promtool read the dashboard's expressions as if
// they were rules.
func TestEveryExpressionIsPromQL(t *testing.T) {
	t.Parallel()
	queries, err := observability.Queries()
	require.NoError(t, err)
	type rule struct {
		Record string            `yaml:"record"`
		Expr   string            `yaml:"expr"`
		Labels map[string]string `yaml:"labels"`
	}
	var rules []rule
	for _, q := range queries {
		rules = append(rules, rule{"test:expression", q.Expr, map[string]string{"of": q.Where + " " + q.Expr}})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "dashboard.yaml")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	promtool(t, "check", "rules", path)
}

// TestEveryAlertIsTested wants a case in which an alert fires and one in which
// it does not.
func TestEveryAlertIsTested(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			Name           string
			AlertRuleTests []struct {
				Alertname string
				ExpAlerts []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	tests := file.Tests
	for _, name := range []string{"rules_test.yaml", "rules_days_test.yaml"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		file.Tests = nil
		require.NoError(t, yaml.Unmarshal(text, &file))
		tests = append(tests, file.Tests...)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range tests {
		for _, a := range test.AlertRuleTests {
			require.True(t, strings.HasPrefix(test.Name, a.Alertname), test.Name)
			fires[a.Alertname] = fires[a.Alertname] || len(a.ExpAlerts) > 0
			silent[a.Alertname] = silent[a.Alertname] || len(a.ExpAlerts) == 0
		}
	}
	rules, err := observability.Rules()
	require.NoError(t, err)
	for _, r := range rules {
		if r.Alert != "" {
			require.True(t, fires[r.Alert], "no test in which %s fires", r.Alert)
			require.True(t, silent[r.Alert], "no test in which %s is silent", r.Alert)
		}
	}
}
