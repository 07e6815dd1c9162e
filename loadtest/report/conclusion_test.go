package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/result"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

// Whoever sees a finding on a terminal reads there what it means, as on the page.
func TestFindingsAreExplainedInTheText(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Verdict.Passed = false
	r.Verdict.Findings = verdict.Findings{Counts: map[verdict.Kind]int{verdict.NotOurs: 2, "of_a_later_version": 1}}
	lines := strings.Join(Conclusions(r), "\n")
	require.Contains(t, lines, "not_of_this_run × 2: "+verdict.NotOurs.Means())
	require.Contains(t, lines, "of_a_later_version × 1: a promise")
}

// A run that sent nothing had nothing to audit: its database is not at fault.
func TestNothingSentIsNoAuditThatFailed(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Totals, r.Outcomes = result.Totals{}, nil
	r.Verdict = result.Verdict{}
	r.Valid = result.Validity{Reasons: []string{"nothing was sent"}}
	lines := strings.Join(Conclusions(r), "\n")
	require.Contains(t, lines, "NOT PROVEN: nothing was sent")
	require.NotContains(t, lines, "audit could not")
}
