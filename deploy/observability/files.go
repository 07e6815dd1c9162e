package observability

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed rules.yaml dashboard.json
var files embed.FS

// Query is one PromQL expression of the rules or the dashboard.
type Query struct {
	Where string // such as "alert OncegateDown"
	Expr  string // with the dashboard's variables filled in
}

// Rule is one rule of rules.yaml.
type Rule struct {
	Alert, Record, Expr, For string
	Labels, Annotations      map[string]string
}

// Rules reads rules.yaml.
func Rules() ([]Rule, error) {
	text, err := files.ReadFile("rules.yaml")
	if err != nil {
		return nil, err
	}
	var file struct {
		Groups []struct{ Rules []Rule }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("rules.yaml: %w", err)
	}
	var all []Rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all, nil
}

// Panel is one panel of the dashboard.
type Panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, LegendFormat string }
}

// Dashboard is what the tests look at in dashboard.json.
type Dashboard struct {
	UID, Title string
	Panels     []Panel
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
}

// ReadDashboard reads dashboard.json.
func ReadDashboard() (d Dashboard, err error) {
	text, err := files.ReadFile("dashboard.json")
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("dashboard.json: %w", err)
	}
	return d, nil
}

// Queries returns every expression of both files.
func Queries() ([]Query, error) {
	rules, err := Rules()
	if err != nil {
		return nil, err
	}
	d, err := ReadDashboard()
	if err != nil {
		return nil, err
	}
	var all []Query
	for _, r := range rules {
		all = append(all, Query{"rule " + r.Alert + r.Record, r.Expr})
	}
	filled := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$job", "oncegate")
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			all = append(all, Query{"panel " + p.Title, filled.Replace(t.Expr)})
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, Query{"annotation " + a.Name, filled.Replace(a.Expr)})
	}
	for _, v := range d.Templating.List {
		if selector, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
			selector, _, _ = strings.Cut(selector, ", ")
			all = append(all, Query{"variable " + v.Name, filled.Replace(selector)})
		}
	}
	return all, nil
}
