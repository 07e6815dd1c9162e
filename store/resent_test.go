package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

// statements are those of a decision about a limited SKU with a business number,
// in their order, by how they begin.
func statements() []string {
	return []string{
		"SELECT user_id, balance", "SELECT user_id, idempotency_key", "SELECT order_id", "SELECT sku",
		"INSERT INTO orders", "INSERT INTO idempotency", "UPDATE users", "UPDATE stock", "COMMIT",
	}
}

// resending has a proxy send the first statement that begins with a text twice,
// or, after a COMMIT, all that its transaction had.
type resending struct {
	begin string
	last  bool

	mu          sync.Mutex
	transaction []string // the statements of the one that was resent
	seen        []string
	met         atomic.Bool
}

const wholeTransaction = "the whole transaction"

func (r *resending) hook(q string) faultproxy.Action {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.Contains(q, " FROM users ") {
		r.seen = nil // where every transaction begins
	}
	r.seen = append(r.seen, q)
	if r.transaction == nil && q == "COMMIT" {
		r.transaction = r.seen
	}
	whole := r.begin == wholeTransaction && q == "COMMIT"
	if !whole && !strings.HasPrefix(q, r.begin) || r.met.Swap(true) {
		return faultproxy.Pass
	}
	if whole {
		return faultproxy.Resend{Statements: r.seen, Last: r.last}
	}
	return faultproxy.Resend{Last: r.last}
}

// onResent runs a test for each statement, and for the whole transaction, whose
// first or last reply reaches the gateway.
func onResent(t *testing.T, statements []string, test func(t *testing.T, dsn string, name string, r *resending)) {
	t.Helper()
	onServers(t, func(t *testing.T, dsn string) {
		for i, begin := range append(statements, wholeTransaction) {
			for _, last := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, last reply: %v", begin, last), func(t *testing.T) {
					r := &resending{begin: begin, last: last}
					test(t, dsn, fmt.Sprintf("user-%d-%v", i, last), r)
					require.True(t, r.met.Load(), "the statement was sent")
				})
			}
		}
	})
}

// A middlebox that takes a try for lost sends it again. Whatever it repeats, one
// order is made and charged once, and the customer hears of it.
func TestAStatementThatIsResentMakesOneOrder(t *testing.T) {
	t.Parallel()
	onResent(t, statements(), func(t *testing.T, dsn, user string, r *resending) {
		h, proxy := behindProxy(t, dsn, patient)
		account(t, h, user, 100_00)
		require.NoError(t, h.SetStock(t.Context(), user, 5))
		c := command(t, user, "k", order.Line{SKU: user, Quantity: 2, Amount: 1_00, ExternalOrderNo: "n"})
		proxy.OnQuery(r.hook)
		require.NoError(t, decideThenCheck(t, h, ample, c, func() {}))
		proxy.OnQuery(nil)
		h.holds(t, user, 99_00, 3)

		// The same by a session of its own, after another order: what the transaction
		// left decides, not when it comes.
		require.Equal(t, "created", kinds(submit(t, h, command(t, user, "other", order.Line{SKU: user, Quantity: 1, Amount: 1_00}))()))
		onRawSession(t, dsn, func(db *sql.DB) {
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer func() { require.NoError(t, conn.Close()) }()
			ctx, cancel := context.WithTimeout(t.Context(), ample)
			defer cancel()
			_, err = conn.ExecContext(ctx, "BEGIN")
			require.NoError(t, err)
			for _, statement := range r.transaction {
				_, _ = conn.ExecContext(ctx, statement) // a duplicate is refused
			}
		})
		h.holds(t, user, 98_00, 2)
		require.Equal(t, "replayed", kinds(submit(t, h, c)()))
		report, err := h.Audit(t.Context(), AuditOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
	})
}

// What an order held is given back once.
func TestAStatementThatIsResentGivesBackOnce(t *testing.T) {
	t.Parallel()
	cancellation := []string{
		"SELECT balance", "SELECT order_id", "UPDATE orders", "UPDATE users", "SELECT available", "UPDATE stock", "INSERT INTO order_events", "COMMIT",
	}
	onResent(t, cancellation, func(t *testing.T, dsn, user string, r *resending) {
		h, proxy := behindProxy(t, dsn, patient)
		account(t, h, user, 100_00)
		require.NoError(t, h.SetStock(t.Context(), user, 5))
		require.Equal(t, "created", kinds(submit(t, h, command(t, user, "k", order.Line{SKU: user, Quantity: 2, Amount: 1_00}))()))
		orders, err := h.Orders(t.Context(), user, order.ID{}, 1)
		require.NoError(t, err)
		proxy.OnQuery(r.hook)
		result, err := h.Cancel(t.Context(), user, orders[0].ID)
		proxy.OnQuery(nil)
		require.NoError(t, err)
		require.Equal(t, order.Cancelled, result.Order.Status)
		h.holds(t, user, 100_00, 5)
		report, err := h.Audit(t.Context(), AuditOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
	})
}

// holds checks what a user and a SKU of the same name have.
func (h *harness) holds(t *testing.T, user string, balance order.Amount, stock int64) {
	t.Helper()
	got, err := h.Balance(t.Context(), user)
	require.NoError(t, err)
	require.Equal(t, balance, got, "balance")
	available, _, err := h.Stock(t.Context(), user)
	require.NoError(t, err)
	require.Equal(t, stock, available, "stock")
}
