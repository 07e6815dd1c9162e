package observability

import (
	"regexp"
	"slices"
)

// What is no metric in an expression, in the order in which it is taken out.
var (
	quoted    = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
	matchers  = regexp.MustCompile(`\{[^}]*\}`)
	spans     = regexp.MustCompile(`\[[^\]]*\]`)
	groupings = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	functions = regexp.MustCompile(`\b[a-z_0-9]+\s*\(`)
	keywords  = regexp.MustCompile(`\b(?:and|or|unless|bool|offset|sum|max|min|avg|count|topk)\b`)
	numbers   = regexp.MustCompile(`\b[0-9][0-9a-z.]*\b`)
	names     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
)

// Metrics returns the metrics that the expression names, sorted, once each.
func (q Query) Metrics() []string {
	rest := q.Expr
	for _, none := range []*regexp.Regexp{quoted, matchers, spans, groupings, functions, keywords, numbers} {
		rest = none.ReplaceAllString(rest, " ")
	}
	found := names.FindAllString(rest, -1)
	slices.Sort(found)
	return slices.Compact(found)
}
