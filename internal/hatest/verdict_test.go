//go:build linux && ha

package hatest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

// judged is what was looked at and found.
type judged struct {
	cases     []*history.Case
	audit     verdict.Summary
	linearity verdict.Linearity
	findings  verdict.Findings
}

// judge compares what the customers heard with what the database has now, and
// prints the figures.
func (c *customers) judge(cases []*history.Case, dsn string) *judged {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	names := make([]string, len(c.users))
	for i, u := range c.users {
		names[i] = u.User
	}
	db, err := verdict.OpenDB(dsn)
	require.NoError(c.t, err)
	defer func() { require.NoError(c.t, db.Close()) }()
	scope := verdict.Scope{KeyPrefix: scenario.KeyPrefix(c.run), OwnUsers: true}
	truth, err := verdict.FromSQL(ctx, db, names, scope)
	require.NoError(c.t, err)
	j := &judged{cases: cases, findings: verdict.Answers(cases)}
	var found verdict.Findings
	j.audit, found = verdict.Audit(cases, truth, scope)
	j.findings.Merge(found)
	// What the database has in the end is the last operation of each key.
	end := time.Since(c.driver.Start())
	for _, kase := range cases {
		kase.Add(history.Record{
			Op: history.Status, Outcome: measure.Read, Proof: history.NoEffect, Sent: end, Done: end + time.Millisecond,
			State: truth.Keys[verdict.KeyID{User: kase.User, Key: kase.Intent.Key}].State,
		})
	}
	j.linearity, found = verdict.Linearizable(ctx, cases, "")
	j.findings.Merge(found)
	c.t.Log(j.String())
	return j
}

// requireClean fails with everything that was found.
func (c *customers) requireClean(j *judged) {
	c.t.Helper()
	for _, f := range j.findings.List {
		c.t.Errorf("%s: key %s of %s: %s", f.Kind, f.Key, f.User, f.Detail)
	}
	require.Zero(c.t, j.findings.Total(), "violations")
	require.Zero(c.t, j.linearity.Unknown, "every history was decided")
	require.Positive(c.t, j.audit.Acknowledged)
}

// String gives the figures of a run.
func (j *judged) String() string {
	requests, unknown, silent, gap := j.tally()
	var b strings.Builder
	fmt.Fprintf(&b, "requests %d for %d keys; keys acknowledged %d; requests answered with unknown %d, without an answer %d\n",
		requests, len(j.cases), j.audit.Acknowledged, unknown, silent)
	fmt.Fprintf(&b, "longest time without a new order: %v; histories checked %d; violations %d %v",
		gap.Round(10*time.Millisecond), j.linearity.Checked, j.findings.Total(), j.findings.Counts)
	return b.String()
}

// tally counts requests, those answered with an unknown outcome, those without
// an answer, and measures the longest time in which no new order was answered.
func (j *judged) tally() (requests, unknown, silent int, gap time.Duration) {
	var created []time.Duration
	for _, kase := range j.cases {
		for _, r := range kase.Records() {
			if r.Op == history.Status {
				continue // the read of the database at the end
			}
			requests++
			switch {
			case r.Outcome == measure.Created:
				created = append(created, r.Done)
			case r.HTTP == 0:
				silent++
			case saysUnknown(r):
				unknown++
			}
		}
	}
	slices.Sort(created)
	for i := 1; i < len(created); i++ {
		gap = max(gap, created[i]-created[i-1])
	}
	return requests, unknown, silent, gap
}
