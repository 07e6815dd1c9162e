package loadtest

import (
	"context"
	"fmt"
	"time"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/result"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/verdict"
	"github.com/oncegate/oncegate/loadtest/wire"
)

// audit compares the answers with what the deployment has. An audit that could
// not be made is not a pass.
func (r *run) audit(ctx context.Context, cases []*history.Case, v *result.Verdict) {
	if r.Audit == AuditOff {
		v.AuditNote = "no audit was asked for: the answers were compared with each other only"
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.AuditTimeout)
	defer cancel()
	scope := r.scope()
	truth, err := r.truth(ctx, cases, scope)
	if err != nil {
		v.AuditNote = fmt.Sprintf("the audit could not be made: %v", err)
		return
	}
	summary, findings := verdict.Audit(cases, truth, scope)
	v.Audit = &summary
	v.Findings.Merge(findings)
	if r.Audit == AuditHTTP && !r.OwnUsers {
		v.AuditNote = "over HTTP, and with users that were not made for this run, a second order without a business number is not seen"
	}
}

func (r *run) scope() verdict.Scope {
	return verdict.Scope{KeyPrefix: scenario.KeyPrefix(r.Run), OwnUsers: r.OwnUsers}
}

func (r *run) truth(ctx context.Context, cases []*history.Case, scope verdict.Scope) (*verdict.Truth, error) {
	if r.Audit == AuditSQL {
		db, err := verdict.OpenDB(r.DSN)
		if err != nil {
			return nil, err
		}
		defer func() { _ = db.Close() }() // nothing was written
		awaitReady(ctx, db, min(comesBack, r.AuditTimeout/2))
		return verdict.FromSQL(ctx, db, r.senders(cases), scope)
	}
	tokens := make(map[string]string, len(r.Users))
	for _, u := range r.Users {
		tokens[u.User] = u.Token
	}
	senders := map[string]string{}
	for _, name := range r.senders(cases) {
		senders[name] = tokens[name]
	}
	// A client of its own: that of the run may have been broken off.
	client, err := wire.New(wire.Options{Target: r.Target, Timeout: r.Timeout, TLS: r.TLS})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return verdict.FromHTTP(ctx, client, senders, cases)
}

// comesBack is how long an audit waits for a database that was restarted in the run.
const comesBack = time.Minute

// awaitReady waits until the database can be audited. Why it cannot is for the audit
// to say.
func awaitReady(ctx context.Context, db *verdict.Database, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for ctx.Err() == nil && db.Ready(ctx) != nil {
		pause(ctx, watchEvery)
	}
}

// senders lists the users who can have orders of this run: those who sent
// something, and all who were made for it.
func (r *run) senders(cases []*history.Case) []string {
	if r.OwnUsers {
		return r.names()
	}
	seen := map[string]bool{}
	var users []string
	for _, c := range cases {
		if !seen[c.User] {
			seen[c.User] = true
			users = append(users, c.User)
		}
	}
	return users
}
