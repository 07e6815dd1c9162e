//go:build linux

package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/decimal"
	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

// judged is what the checks looked at and found.
type judged struct {
	audit     verdict.Summary
	linearity verdict.Linearity
	findings  verdict.Findings
}

// judge compares what the customers heard with what the database has.
func (w *world) judge(tr *traffic, cases []*history.Case, scope verdict.Scope) (j judged) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	names := make([]string, len(w.people))
	for i, u := range w.people {
		names[i] = u.User
	}
	db, err := verdict.OpenDB(w.dsn)
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, db.Close()) }()
	asked := time.Since(tr.driver.Start())
	truth, err := verdict.FromSQL(ctx, db, names, scope)
	require.NoError(w.t, err)
	j.findings = verdict.Answers(cases)
	var fromSQL verdict.Findings
	j.audit, fromSQL = verdict.Audit(cases, truth, scope)
	j.findings.Merge(fromSQL)
	// What the database has in the end is the last operation of each key.
	for _, c := range cases {
		c.Add(history.Record{
			Op: history.Status, Outcome: measure.Read, Proof: history.NoEffect, Sent: asked, Done: time.Since(tr.driver.Start()),
			State: truth.Keys[verdict.KeyID{User: c.User, Key: c.Intent.Key}].State,
		})
	}
	var disorder verdict.Findings
	j.linearity, disorder = verdict.Linearizable(ctx, cases, "")
	j.findings.Merge(disorder)
	return j
}

// requireAnswers demands that nobody was left without an answer that settles
// what became of the request.
func (w *world) requireAnswers(cases []*history.Case) {
	w.t.Helper()
	for _, c := range cases {
		settled, tried := false, false
		for _, r := range c.Records() {
			if r.Op <= history.Other {
				tried = true
				settled = settled || r.Proof == history.Decided || r.Outcome == measure.Reused
			}
		}
		if tried && !settled {
			w.t.Errorf("key %s of %s (%s) was never settled", c.Intent.Key, c.User, c.Intent.Behaviour.Name)
		}
	}
}

// requireConserved demands that no money and no stock came or went but with
// orders. The program's own audit is asked, and then the tables themselves.
func (w *world) requireConserved() {
	w.t.Helper()
	audited(w.t, w.sites[gatewayCount-1].gateway)
	require.Zero(w.t, number(w.t, w.admin, `SELECT COUNT(*) FROM users u LEFT JOIN
		(SELECT user_id, SUM(amount) AS spent FROM orders WHERE status <> 'CANCELLED' GROUP BY user_id) o ON o.user_id = u.user_id
		WHERE u.balance <> CAST(? AS DECIMAL(14,2)) - COALESCE(o.spent, 0)`, decimal.Text(w.cents)), "balances")
	require.Zero(w.t, number(w.t, w.admin, `SELECT COUNT(*) FROM stock s LEFT JOIN
		(SELECT sku, SUM(quantity) AS taken FROM orders WHERE status <> 'CANCELLED' GROUP BY sku) o ON o.sku = s.sku
		WHERE s.available <> ? - COALESCE(o.taken, 0)`, w.stock), "stock")
}

// requireNoMarks demands that what says "in progress" is gone when the last mark
// can have expired, and that everything in Redis expires.
func (w *world) requireNoMarks() {
	w.t.Helper()
	limit, over := context.WithTimeout(context.Background(), markTTL+10*time.Second)
	defer over()
	ctx, cancel := context.WithTimeout(context.Background(), readyTime) // whoever looks in time may take longer
	defer cancel()
	var marks int
	for tick := every(limit, 100*time.Millisecond); tick(); {
		marks = 0
		for scan := w.cache.Scan(ctx, 0, "*", 500).Iterator(); scan.Next(ctx); {
			ttl, err := w.cache.PTTL(ctx, scan.Val()).Result()
			require.NoError(w.t, err)
			require.NotEqual(w.t, time.Duration(-1), ttl, "an entry that never expires: %s", scan.Val())
			value, _ := w.cache.Get(ctx, scan.Val()).Result() // what the faults left is of other types
			if strings.HasPrefix(value, "\x01P") {
				marks++
				require.LessOrEqual(w.t, ttl, markTTL, "a mark that outlives its limit: %s", scan.Val())
			}
		}
		if marks == 0 {
			return
		}
	}
	w.t.Errorf("%d marks are still there %v after the last request", marks, markTTL+10*time.Second)
}

// requireNothingLeft demands that gateways at rest hold what they held when they
// had just started, and after their orderly end nothing.
func (w *world) requireNothingLeft() {
	w.t.Helper()
	for _, s := range w.sites {
		if s.within != nil {
			continue // its admin listener is out of reach
		}
		w.eventually(func() error {
			n, err := s.goroutines()
			if err == nil && n > w.atRest+goroutineSlack {
				err = fmt.Errorf("a gateway at rest has %d goroutines, one that had just started %d", n, w.atRest)
			}
			return err
		})
	}
	w.eventually(func() error {
		if n := number(w.t, w.admin, "SELECT COUNT(*) FROM information_schema.innodb_trx"); n > 0 {
			return fmt.Errorf("%d transactions are open", n)
		}
		return nil
	})
	for _, s := range w.sites {
		require.NoError(w.t, s.stop(), "an orderly end")
	}
	w.eventually(func() error {
		if n := number(w.t, w.admin, "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'shop'"); n > 0 {
			return fmt.Errorf("%d sessions of gateways that have ended", n)
		}
		return nil
	})
	w.eventually(func() error {
		list, err := w.cache.ClientList(context.Background()).Result()
		if n := strings.Count(list, "\n"); err == nil && n > ownRedisConnections {
			err = fmt.Errorf("%d connections to Redis", n)
		}
		return err
	})
}

const (
	// goroutineSlack is for connections that are about to be given back, and
	// for those of the pools.
	goroutineSlack = 40
	// ownRedisConnections are those of this process.
	ownRedisConnections = 30
)

func (w *world) eventually(check func() error) {
	w.t.Helper()
	w.within(readyTime, check)
}

func (w *world) within(limit time.Duration, check func() error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var err error
	for tick := every(ctx, 100*time.Millisecond); tick(); {
		if err = check(); err == nil {
			return
		}
	}
	w.t.Error(err)
}

// met asks the gateways which faults their ledgers have met.
func (w *world) met() map[string]int {
	sum := map[string]int{}
	for _, s := range w.sites {
		if s.within != nil {
			continue
		}
		_, page, err := get(context.Background(), "http://"+s.admin+"/metrics")
		require.NoError(w.t, err)
		for line := range strings.Lines(page) {
			rest, ours := strings.CutPrefix(line, `oncegate_ledger_faults_total{fault="`)
			if name, value, ok := strings.Cut(rest, `"} `); ours && ok {
				n := 0
				_, err := fmt.Sscan(value, &n)
				require.NoError(w.t, err)
				sum[name] += n
			}
		}
	}
	return sum
}

// goroutines asks a gateway how many it has.
func (g *gateway) goroutines() (int, error) {
	n, err := g.gauge("go_goroutines")
	return int(n), err
}

// gauge asks a gateway for one of its metrics that has no labels.
func (g *gateway) gauge(name string) (value float64, err error) {
	_, page, err := get(context.Background(), "http://"+g.admin+"/metrics")
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(page, "\n"+name+" ")
	if !found {
		return 0, fmt.Errorf("a gateway has no metric %s", name)
	}
	_, err = fmt.Sscan(after, &value)
	return value, err
}
