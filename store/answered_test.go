package store

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

// passing are errors by which a server says that another try may do better: it is
// short of something, ends, interrupts, chose a victim, or takes no writes.
func passing() []faultproxy.AnswerError {
	return []faultproxy.AnswerError{
		{Code: 1020, Message: "Record has changed since last read in table 'users'"},
		{Code: 1021, Message: "Disk full"},
		{Code: 1053, State: "08S01", Message: "Server shutdown in progress"},
		{Code: 1114, Message: "The table 'orders' is full"},
		{Code: 1205, Message: "Lock wait timeout exceeded; try restarting transaction"},
		{Code: 1213, State: "40001", Message: "Deadlock found when trying to get lock; try restarting transaction"},
		{Code: 1290, Message: "The server is running with the --read-only option so it cannot execute this statement"},
		{Code: 1317, State: "70100", Message: "Query execution was interrupted"},
		{Code: 1792, State: "25006", Message: "Cannot execute statement in a READ ONLY transaction."},
		{Code: 1836, Message: "Running in read-only mode"},
		{Code: 1927, State: "70100", Message: "Connection was killed"},
		{Code: 3169, Message: "Session was killed"},
		{Code: 4031, Message: "The client was disconnected by the server because of inactivity."},
	}
}

// rich opens a user with a limited SKU of the same name, and a command for it.
func rich(t *testing.T, h *harness, user string) *order.Command {
	t.Helper()
	account(t, h, user, 100_00)
	require.NoError(t, h.SetStock(t.Context(), user, 5))
	return command(t, user, "k", order.Line{SKU: user, Quantity: 2, Amount: 1_00, ExternalOrderNo: "n"})
}

// Whatever statement is answered with such an error, the transaction is run again,
// whole, and makes the one order.
func TestAnErrorAtAnyStatementMakesOneOrder(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn, patient)
		for _, answer := range passing() {
			for i, begin := range statements() {
				name := fmt.Sprintf("%d at %s", answer.Code, begin)
				user := fmt.Sprintf("user-%d-%d", answer.Code, i)
				c := rich(t, h, user)
				asked := proxy.Seen("COMMIT")
				r := &hooked{begin: begin, action: answer}
				proxy.OnQuery(r.hook)
				require.Equal(t, "created", kinds(submit(t, h, c)()), name)
				proxy.OnQuery(nil)
				require.Positive(t, r.met.Load(), name)
				require.Positive(t, proxy.Seen("COMMIT")-asked, name)
				h.holds(t, user, 99_00, 3)
			}
		}
		requireSound(t, h)
	})
}

// A statement that is answered so each time ends in an outage that tells the truth:
// before COMMIT nothing was made. (Of COMMIT: TestACommitThatIsRefusedEachTimeIsAnOutage.)
func TestAnErrorAtEveryTryLeavesNothing(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn, patient)
		beforeCommit := statements()[:len(statements())-1]
		for i, answer := range passing() {
			begin := beforeCommit[i%len(beforeCommit)]
			name := fmt.Sprintf("%d at %s", answer.Code, begin)
			user := fmt.Sprintf("user-%d", i)
			c := rich(t, h, user)
			r := &hooked{begin: begin, action: answer, always: true}
			proxy.OnQuery(r.hook)
			ctx, cancel := context.WithTimeout(t.Context(), ample)
			_, err := h.Decide(ctx, c)
			cancel()
			proxy.OnQuery(nil)
			require.Greater(t, r.met.Load(), int32(1), name)
			require.ErrorIs(t, err, order.ErrUnavailable, name)
			require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(err), name)
			h.holds(t, user, 100_00, 5)
			require.Equal(t, "created", kinds(submit(t, h, c)()), name)
		}
		requireSound(t, h)
	})
}

func requireSound(t *testing.T, h *harness) {
	t.Helper()
	report, err := h.Audit(t.Context(), AuditOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
}

// hooked does something to the first statement that begins with a text, or to all.
type hooked struct {
	begin  string
	action faultproxy.Action
	always bool
	met    atomic.Int32
}

func (h *hooked) hook(q string) faultproxy.Action {
	if !strings.HasPrefix(q, h.begin) || (h.met.Add(1) > 1 && !h.always) {
		return faultproxy.Pass
	}
	return h.action
}
