package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func (h *harness) exec(t *testing.T, text string, args ...any) {
	t.Helper()
	conn, err := h.reads.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	off, on := "SET foreign_key_checks = 0", "SET foreign_key_checks = 1"
	if h.d.name == "sqlite" {
		off, on = "PRAGMA foreign_keys = 0", "PRAGMA foreign_keys = 1"
	}
	_, err = conn.ExecContext(t.Context(), off)
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), text, args...)
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), on)
	require.NoError(t, err)
}

func TestAuditFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	plants := []struct {
		check string
		plant func(t *testing.T, h *harness, id order.ID)
	}{
		{"key_without_order", func(t *testing.T, h *harness, id order.ID) {
			h.exec(t, "DELETE FROM orders WHERE order_id = ?", id[:])
		}},
		{"order_without_key", func(t *testing.T, h *harness, _ order.ID) {
			h.exec(t, "DELETE FROM idempotency_records WHERE user_id = 'ann'")
		}},
		{"refused_with_order", func(t *testing.T, h *harness, _ order.ID) {
			h.exec(t, "UPDATE idempotency_records SET status = 3 WHERE user_id = 'ann'")
		}},
		{"duplicate_key", func(t *testing.T, h *harness, id order.ID) {
			if h.d.name == "sqlite" {
				h.exec(t, "DROP INDEX uk_orders_key")
			} else {
				h.exec(t, "ALTER TABLE orders DROP INDEX uk_orders_key")
			}
			second := order.NewID(time.Now())
			h.exec(t, "INSERT INTO orders ("+orderColumns+", stock_taken) SELECT ?, user_id, idempotency_key, line_no, 'other', sku, quantity, amount, status, created_at, updated_at, stock_taken FROM orders WHERE order_id = ?", second[:], id[:])
		}},
		{"balance_drift", func(t *testing.T, h *harness, _ order.ID) {
			h.exec(t, "UPDATE users SET balance = balance + 1 WHERE user_id = 'ann'")
		}},
		{"stock_drift", func(t *testing.T, h *harness, _ order.ID) {
			h.exec(t, "UPDATE stock SET available = available + 1 WHERE sku = 'limited'")
		}},
		{"state_without_event", func(t *testing.T, h *harness, id order.ID) {
			h.exec(t, "UPDATE orders SET status = 'PAID' WHERE order_id = ?", id[:])
		}},
		{"event_without_state", func(t *testing.T, h *harness, id order.ID) {
			_, err := h.Cancel(t.Context(), "ann", id)
			require.NoError(t, err)
			h.exec(t, "UPDATE orders SET status = 'PENDING' WHERE order_id = ?", id[:])
		}},
		{"incomplete_batch", func(t *testing.T, h *harness, _ order.ID) {
			account(t, h, "bob", 10_00)
			lines := []order.Line{
				{SKU: "x", Quantity: 1, Amount: 1, ExternalOrderNo: "a"},
				{SKU: "x", Quantity: 1, Amount: 1, ExternalOrderNo: "b"},
				{SKU: "x", Quantity: 1, Amount: 1, ExternalOrderNo: "c"},
			}
			require.Equal(t, "created", kinds(submit(t, h, command(t, "bob", "b", lines...))()))
			h.exec(t, "DELETE FROM orders WHERE user_id = 'bob' AND line_no = 1")
		}},
	}
	for _, p := range plants {
		t.Run(p.check, func(t *testing.T) {
			t.Parallel()
			onEngines(t, func(t *testing.T, dsn string) {
				h := openHarness(t, Options{DSN: dsn})
				require.NoError(t, h.SetStock(t.Context(), "limited", 10))
				id := placed(t, h, "ann", order.Line{SKU: "limited", Quantity: 3, Amount: 19_90, ExternalOrderNo: "n"})
				for i := range 7 {
					account(t, h, fmt.Sprintf("user-%d", i), 1_00)
				}
				clean, err := h.Audit(t.Context(), AuditOptions{Chunk: 3})
				require.NoError(t, err)
				require.Empty(t, clean.Findings)
				require.EqualValues(t, 8, clean.Users)
				require.EqualValues(t, 1, clean.Orders)
				p.plant(t, h, id)
				found, err := h.Audit(t.Context(), AuditOptions{Chunk: 3})
				require.NoError(t, err)
				var checks []string
				for _, f := range found.Findings {
					checks = append(checks, f.Check)
				}
				require.Contains(t, checks, p.check)
			})
		})
	}
}
