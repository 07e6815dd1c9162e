package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// planted writes orders of somebody who was busy once, and then of somebody else,
// and has the server look at its tables.
func planted(t *testing.T, h *harness, old, since int) {
	t.Helper()
	var rows []string
	for i := range old + since {
		user := "old"
		if i >= old {
			user = "new"
		}
		rows = append(rows, fmt.Sprintf("(UNHEX('%032x'), '%s', 'k%d', 0, NULL, 'sku-%d', 1, 0.01, 'PENDING', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 1)", i+1, user, i, i))
	}
	account(t, h, "old", 1_00)
	account(t, h, "new", 1_00)
	for chunk := range slices.Chunk(rows, 250) {
		_, err := h.reads.ExecContext(t.Context(), "INSERT INTO orders ("+orderColumns+", stock_taken) VALUES "+strings.Join(chunk, ","))
		require.NoError(t, err)
	}
	_, err := h.reads.ExecContext(t.Context(), "INSERT INTO stock (sku, available, supplied) SELECT sku, 0, 1 FROM orders")
	require.NoError(t, err)
	for _, table := range []string{"orders", "stock"} {
		_, err = h.reads.ExecContext(t.Context(), "ANALYZE TABLE "+table) // its words are passed over
		require.NoError(t, err)
	}
}

// rowsRead is how many rows the only session for reads has had from the engine.
func rowsRead(t *testing.T, h *harness) (n int) {
	t.Helper()
	rows, err := h.reads.QueryContext(t.Context(), "SHOW SESSION STATUS LIKE 'Handler_read%'")
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var name string
		var value int
		require.NoError(t, rows.Scan(&name, &value))
		n += value
	}
	require.NoError(t, rows.Err())
	return n
}

// Whoever has many orders, none of them new, gets a page for what a page costs.
func TestAPageOfOrdersReadsNoMoreThanAPage(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn, ReadConns: 1, ReadTimeout: time.Minute, WaitTimeout: 2 * time.Minute})
		planted(t, h, 200, 1300)
		const page = 20
		var before order.ID
		for range 3 {
			started := rowsRead(t, h)
			orders, err := h.Orders(t.Context(), "old", before, page)
			require.NoError(t, err)
			require.Less(t, rowsRead(t, h)-started, 5*page)
			require.Len(t, orders, page)
			before = orders[page-1].ID
		}
	})
}

// An engine that has no better way compares each order with each SKU.
func TestTheAuditOfStockComparesNoOrderWithEverySKU(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn, ReadTimeout: time.Minute, WaitTimeout: 2 * time.Minute})
		planted(t, h, 300, 700)
		var plan string
		require.NoError(t, h.reads.QueryRowContext(t.Context(), "EXPLAIN FORMAT=JSON "+auditStock).Scan(&plan))
		require.NotContains(t, plan, "BNL")
		_, err := h.reads.ExecContext(t.Context(), "UPDATE stock SET supplied = 2 WHERE sku = 'sku-7'")
		require.NoError(t, err)
		a := audit{s: h.Store, db: h.reads, o: AuditOptions{MaxFindings: 10}}
		require.NoError(t, a.run(t.Context(), "stock_drift", auditStock))
		require.Equal(t, []Finding{{"stock_drift", "sku-7", "supplied 2, available 0, taken by orders 1"}}, a.report.Findings)
	})
}
