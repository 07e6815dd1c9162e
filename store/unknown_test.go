package store

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

// behindProxy opens a store whose connections go through a proxy, and an account
// that holds 100. Its limits are short, so that silence is noticed soon, unless the
// changes say otherwise.
func behindProxy(t *testing.T, dsn string, changes ...func(*Options)) (*harness, *faultproxy.MySQLProxy) {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	proxy := faultproxy.NewMySQL(t, c.Addr)
	c.Addr = proxy.Addr()
	o := Options{DSN: c.FormatDSN(), Workers: 1, ReadTimeout: 1500 * time.Millisecond}
	for _, change := range changes {
		change(&o)
	}
	h := openHarness(t, o)
	account(t, h, "ann", 100_00)
	return h, proxy
}

// reached is the time for a command to come as far as its COMMIT, where that is to
// have no good end: a test waits for all of it.
const reached = 4 * time.Second

// first makes a hook act on the first statement that begins with a text; those
// after it pass.
func first(begin string, action faultproxy.Action) func(string) faultproxy.Action {
	var seen atomic.Int32
	return func(q string) faultproxy.Action {
		if strings.HasPrefix(q, begin) && seen.Add(1) == 1 {
			return action
		}
		return faultproxy.Pass
	}
}

// unanswered is how many COMMITs were sent and not answered with success: that
// what a test does to them has happened.
func (h *harness) unanswered(t *testing.T) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, h.metrics.unknown.Write(&m))
	return m.GetCounter().GetValue()
}

// decideThenCheck submits one command and returns what the answer got wrong.
func decideThenCheck(t *testing.T, h *harness, budget time.Duration, c *order.Command, settled func()) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), budget)
	defer cancel()
	d, err := h.Decide(ctx, c)
	settled()
	n, cerr := h.CountOrders(context.Background(), c.UserID)
	require.NoError(t, cerr)
	report, aerr := h.Audit(context.Background(), AuditOptions{})
	require.NoError(t, aerr)
	switch {
	case len(report.Findings) > 0:
		return fmt.Errorf("the database is inconsistent: %+v", report.Findings)
	case err == nil && (d.Kind != order.Created || n != 1):
		return fmt.Errorf("answered %s with %d orders there", d.Kind, n)
	case err != nil && order.OutcomeOf(err) == order.OutcomeNotCommitted && n != 0:
		return fmt.Errorf("answered %w with %d orders there", err, n)
	case n > 1:
		return fmt.Errorf("%d orders", n)
	}
	return err
}

func TestUnansweredCommitIsResolved(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]faultproxy.Action{
		"AnswerLost":     faultproxy.Swallow,
		"AnswerSilent":   faultproxy.SwallowSilently,
		"NeverDelivered": faultproxy.CutBefore,
		"DeliveredLate":  faultproxy.DelayForward{For: 2500 * time.Millisecond},
		"Refused":        faultproxy.AnswerError{Code: 1213, State: "40001", Message: "Deadlock found"},
		"LeavingGroup":   faultproxy.AnswerError{Code: 3100, State: "HY000", Message: "Error on observer while running replication hook 'before_commit'."},
		"RefusedByGroup": faultproxy.AnswerError{Code: 3101, State: "HY000", Message: "Plugin instructed the server to rollback"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, dsn string) {
				h, proxy := behindProxy(t, dsn)
				proxy.OnQuery(first("COMMIT", action))
				require.NoError(t, decideThenCheck(t, h, ample, command(t, "ann", "k", potsticker(1_00)), func() {}))
				require.Positive(t, h.unanswered(t))
				require.Equal(t, "replayed", kinds(submit(t, h, command(t, "ann", "k", potsticker(1_00)))()))
			})
		})
	}
}

func TestUnprotectedOrderSurvivesAnUnansweredCommit(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]faultproxy.Action{"AnswerLost": faultproxy.Swallow, "NeverDelivered": faultproxy.CutBefore} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, dsn string) {
				h, proxy := behindProxy(t, dsn, patient)
				proxy.OnQuery(first("COMMIT", action))
				require.NoError(t, decideThenCheck(t, h, ample, command(t, "ann", "", potsticker(1_00)), func() {}))
				require.Positive(t, h.unanswered(t))
			})
		})
	}
}

func TestUnresolvedCommitIsCalledUnknown(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn, patient)
		proxy.OnQuery(func(q string) faultproxy.Action {
			if q == "COMMIT" {
				return faultproxy.CutBefore
			}
			return faultproxy.Pass
		})
		err := decideThenCheck(t, h, reached, command(t, "ann", "k", potsticker(1_00)), func() {})
		require.ErrorIs(t, err, order.ErrUnavailable)
		require.Equal(t, order.OutcomeUnknown, order.OutcomeOf(err))
		proxy.OnQuery(nil)
		require.NoError(t, decideThenCheck(t, h, ample, command(t, "ann", "k", potsticker(1_00)), func() {}))
	})
}

func TestConnectionCutAtAnyStatementMakesOneOrder(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		for i, begin := range statements() {
			for j, action := range []faultproxy.Action{faultproxy.CutBefore, faultproxy.Swallow} {
				t.Run(fmt.Sprintf("%s %v", begin, action), func(t *testing.T) {
					h, proxy := behindProxy(t, dsn, patient)
					user := fmt.Sprintf("user-%d-%d", i, j)
					account(t, h, user, 100_00)
					require.NoError(t, h.SetStock(t.Context(), user, 5))
					met := atomic.Bool{}
					hook := first(begin, action)
					proxy.OnQuery(func(q string) faultproxy.Action {
						a := hook(q)
						met.Store(met.Load() || a != faultproxy.Pass)
						return a
					})
					c := command(t, user, "k", order.Line{SKU: user, Quantity: 2, Amount: 1_00, ExternalOrderNo: "n"})
					require.NoError(t, decideThenCheck(t, h, ample, c, func() {}))
					require.True(t, met.Load(), "the statement was sent")
				})
			}
		}
	})
}

// One half of a transaction must never be committed after a statement failed.
func halfCommitted(t *testing.T, dsn string) error {
	t.Helper()
	h, proxy := behindProxy(t, dsn, patient)
	r := &hooked{begin: "INSERT INTO idempotency", action: faultproxy.AnswerError{Code: 1205, State: "HY000", Message: "Lock wait timeout exceeded"}}
	proxy.OnQuery(r.hook)
	err := decideThenCheck(t, h, ample, command(t, "ann", "k", potsticker(1_00)), func() {})
	require.Positive(t, r.met.Load(), "the statement was sent")
	return err
}

// A COMMIT that arrives after its client gave up must not make a liar of it.
func lateCommit(t *testing.T, dsn string) error {
	t.Helper()
	h, proxy := behindProxy(t, dsn)
	deliver := make(chan struct{})
	proxy.OnQuery(first("COMMIT", faultproxy.DelayForward{Until: deliver, For: ample}))
	return decideThenCheck(t, h, h.o.ReadTimeout+reached, command(t, "ann", "k", potsticker(1_00)), func() {
		close(deliver)
		ctx, cancel := context.WithTimeout(context.Background(), ample)
		defer cancel()
		for pause(ctx, 10*time.Millisecond) { // until the late packet has had its effect
			_, err := h.Confirm(ctx, "ann", "k")
			if err == nil {
				return
			}
		}
	})
}

func TestHalfATransactionIsNeverCommitted(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) { require.NoError(t, halfCommitted(t, dsn)) })
}

func TestLateCommitIsNeverDenied(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		err := lateCommit(t, dsn)
		var u *order.UndecidedError
		require.ErrorAs(t, err, &u, "it is delivered after the answer only")
		require.Equal(t, order.OutcomeUnknown, u.Outcome)
	})
}
