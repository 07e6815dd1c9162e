package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// damage is what somebody does to the rows of a key.
type damage struct {
	name string
	sql  []string
	// still is what the key is answered with, "" when it cannot be.
	still string
}

const ofTheKey = " WHERE user_id = '{ann}' AND idempotency_key = 'k'"

// damages to the record of a request that made an order, as far as the types of the
// columns let them in. Where two values are as good, nobody can tell them apart.
func damages() []damage {
	set := func(assignment string) []string {
		return []string{"UPDATE idempotency_records SET " + assignment + ofTheKey}
	}
	return []damage{
		{"digest of zeros", set("request_digest = ''"), ""},
		{"digest of another content", set("request_digest = REPEAT('x', 32)"), "reused"},
		{"digest cut short", set("request_digest = LEFT(request_digest, 31)"), "reused"},
		{"no operation", set("operation = ''"), ""},
		{"operation of another version", set("operation = 'orders.create/2'"), ""},
		{"state 0", set("status = 0"), ""},
		{"state in progress", set("status = 1"), ""},
		{"state refused", set("status = 3"), ""},
		{"state 255", set("status = 255"), ""},
		{"no order id", set("order_id = NULL"), ""},
		{"order id of another's order", set("order_id = (SELECT order_id FROM orders WHERE user_id = '{bob}')"), ""},
		{"order id of no order", set("order_id = REPEAT('x', 16)"), ""},
		{"order id of zeros", set("order_id = ''"), ""},
		{"status 0", set("response_status = 0"), ""},
		{"status 100", set("response_status = 100"), ""},
		{"status 999", set("response_status = 999"), ""},
		{"status 65535", set("response_status = 65535"), ""},
		{"no type", set("response_type = ''"), ""},
		{"type with a line break", set("response_type = 'a/b\r\nSet-Cookie: x'"), ""},
		{"location with a line break", set("response_location = 'x\r\n\r\nx'"), ""},
		{"empty answer", set("response_body = ''"), ""},
		{"answer of garbage", set("response_body = x'00ff7b'"), "replayed"}, // an answer is bytes
		{"no time", set("created_at = '0000-00-00'"), ""},
		{"time long ago", set("created_at = '1000-01-01'"), "replayed"},
		{"time to come", set("created_at = '9999-12-31 23:59:59.999'"), "replayed"},
		{"key of another record", []string{"UPDATE idempotency_records SET idempotency_key = 'moved'" + ofTheKey}, "replayed"},
		{"record gone", []string{"DELETE FROM idempotency_records" + ofTheKey}, "replayed"},
		{"order gone", []string{"DELETE FROM orders" + ofTheKey}, ""},
		{"order of another key", []string{"UPDATE orders SET idempotency_key = 'other'" + ofTheKey}, ""},
		{"order of another user", []string{"UPDATE orders SET user_id = '{bob}'" + ofTheKey}, ""},
		{"compacted", set("response_body = NULL"), "replayed"},
		{"compacted, order gone", append(set("response_body = NULL"), "DELETE FROM orders"+ofTheKey), ""},
		{"compacted, other amount", append(set("response_body = NULL"), "UPDATE orders SET amount = 2"+ofTheKey), ""},
		{"compacted, amount below zero", append(set("response_body = NULL"), "UPDATE orders SET amount = -1"+ofTheKey), ""},
		{"compacted, other quantity", append(set("response_body = NULL"), "UPDATE orders SET quantity = 0"+ofTheKey), ""},
		{"compacted, no SKU", append(set("response_body = NULL"), "UPDATE orders SET sku = ''"+ofTheKey), ""},
		{"compacted, other operation", set("response_body = NULL, operation = 'order-batches.create'"), ""},
	}
}

// What the database has for a key is damaged. The key is answered with what is
// certain, or not at all: as something that only the operators can mend, of which
// it is not known what it made. It is never decided again, and its neighbours are
// not disturbed.
func TestARecordThatCannotBeReadIsNeverDecidedAnew(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		for i, d := range damages() {
			t.Run(d.name, func(t *testing.T) {
				h := openHarness(t, unhurried(Options{DSN: dsn, Workers: 1}))
				ann, bob := fmt.Sprint("ann-", i), fmt.Sprint("bob-", i)
				account(t, h, ann, 100_00)
				account(t, h, bob, 100_00)
				mine := command(t, ann, "k", potsticker(1_00))
				require.Equal(t, "created created created", kinds(submit(t, h, mine,
					command(t, ann, "old", potsticker(1_00)), command(t, bob, "old", potsticker(1_00)))()))
				before := h.everything(t, ann)
				done(t, dsn, d.sql, ann, bob)
				require.NotEqual(t, before, h.everything(t, ann), "the damage is done")

				release := holdWorker(t, h)
				wait := submit(t, h, command(t, bob, "old", potsticker(1_00)), mine, command(t, ann, "new", potsticker(1_00)),
					command(t, ann, "old", potsticker(1_00)), command(t, bob, "new", potsticker(1_00)))
				release()
				results := wait()
				require.Equal(t, "replayed created replayed created", kinds(slices.Delete(slices.Clone(results), 1, 2)))
				if d.still == "" {
					require.Positive(t, h.refusedForGood(t), "the group met it")
				} else {
					require.GreaterOrEqual(t, biggestGroup(t, h), 4.0, "they were decided together")
				}
				requireStill(t, d.still, results[1])
				requireStill(t, d.still, submit(t, h, mine)()[0])
				h.requireReads(t, ann, &d)

				orders, err := h.CountOrders(t.Context(), ann)
				require.NoError(t, err)
				gone := strings.Contains(d.name, "order gone") || strings.Contains(d.name, "another user")
				require.Equal(t, map[bool]int{false: 3, true: 2}[gone], orders)
				balance, err := h.Balance(t.Context(), ann)
				require.NoError(t, err)
				require.Equal(t, order.Amount(97_00), balance, "charged for the two before and the new one")
			})
		}
	})
}

// refusedForGood is how often a transaction met what a retry does not mend.
func (h *harness) refusedForGood(t *testing.T) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, h.metrics.retries[faultPermanent].Write(&m))
	return m.GetCounter().GetValue()
}

func requireStill(t *testing.T, still string, r result) {
	t.Helper()
	if still != "" {
		require.Equal(t, still, kinds([]result{r}))
		return
	}
	require.ErrorIs(t, r.err, order.ErrInternal)
	require.Equal(t, order.OutcomeUnknown, order.OutcomeOf(r.err), "it has a record")
	require.Zero(t, r.decision)
}

// requireReads checks that who asks what became of the request hears the same.
func (h *harness) requireReads(t *testing.T, ann string, d *damage) {
	t.Helper()
	for name, read := range map[string]func(context.Context, string, order.Key) (order.Receipt, error){"find": h.Find, "confirm": h.Confirm} {
		receipt, err := read(t.Context(), ann, "k")
		switch {
		case d.still == "":
			require.ErrorIs(t, err, order.ErrInternal, name)
			require.Zero(t, receipt, name)
		case d.name == "record gone", d.name == "key of another record":
			require.ErrorIs(t, err, order.ErrNotFound, name) // its order is found by whoever sends it again
		default:
			require.NoError(t, err, name)
			require.NotEmpty(t, receipt.Response.Body, name)
		}
	}
	decision, err := h.Accept(t.Context(), command(t, ann, "k", potsticker(1_00)))
	if d.still == "" {
		require.ErrorIs(t, err, order.ErrInternal)
		require.Equal(t, order.OutcomeUnknown, order.OutcomeOf(err))
	} else {
		require.NoError(t, err)
		require.Equal(t, d.still, decision.Kind.String())
	}
}

// A refusal and a request that waits are damaged.
func TestARecordWithoutAnOrderThatCannotBeReadIsNeverDecidedAnew(t *testing.T) {
	t.Parallel()
	damages := map[string]string{
		"state succeeded": "status = 2", "state 0": "status = 0", "status 0": "response_status = 0", "status 201": "response_status = 201",
		"no answer": "response_body = NULL", "empty answer": "response_body = ''", "no type": "response_type = ''",
		"an order": "order_id = (SELECT order_id FROM orders WHERE user_id = '{bob}')",
	}
	onServers(t, func(t *testing.T, dsn string) {
		for i, name := range slices.Sorted(maps.Keys(damages)) {
			t.Run(name, func(t *testing.T) {
				h := openHarness(t, Options{DSN: dsn, Workers: 1})
				ann, bob := fmt.Sprint("ann-", i), fmt.Sprint("bob-", i)
				account(t, h, ann, 1_00)
				account(t, h, bob, 1_00)
				mine := command(t, ann, "k", potsticker(2_00))
				require.Equal(t, "rejected created", kinds(submit(t, h, mine, command(t, bob, "k", potsticker(1_00)))()))
				waiting := batchOf(t, ann, "later", 2, 10)
				_, err := h.Accept(t.Context(), waiting)
				require.NoError(t, err)
				done(t, dsn, []string{
					"UPDATE idempotency_records SET " + damages[name] + ofTheKey,
					"UPDATE idempotency_records SET status = status + 1 WHERE user_id = '{ann}' AND idempotency_key = 'later'",
				}, ann, bob)
				account(t, h, ann, 100_00) // it could be made now
				requireStill(t, "", submit(t, h, mine)()[0])
				requireStill(t, "", submit(t, h, waiting)()[0])
				_, err = h.carryOutNext(t.Context(), DeferredOptions{Lease: time.Minute, MaxAttempts: 1})
				require.ErrorIs(t, err, order.ErrInternal)
				n, err := h.CountOrders(t.Context(), ann)
				require.NoError(t, err)
				require.Zero(t, n)
			})
		}
	})
}

// done carries out statements that nothing checks: not even the indexes.
func done(t *testing.T, dsn string, statements []string, ann, bob string) {
	t.Helper()
	onRawSession(t, dsn, func(db *sql.DB) {
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close()) }()
		for _, statement := range append([]string{"SET SESSION foreign_key_checks = 0", "SET SESSION sql_mode = ''"}, statements...) {
			_, err := conn.ExecContext(t.Context(), strings.NewReplacer("{ann}", ann, "{bob}", bob).Replace(statement))
			require.NoError(t, err, statement)
		}
	})
}

// everything is what the tables have for a user, as text.
func (h *harness) everything(t *testing.T, user string) string {
	t.Helper()
	tables := map[string]string{"idempotency_records": recordColumns, "orders": orderColumns}
	var b strings.Builder
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		var text sql.NullString
		columns := "HEX(" + strings.ReplaceAll(strings.ReplaceAll(tables[table], "created_at", "CONCAT(created_at)"), ", ", "), HEX(") + ")"
		require.NoError(t, h.reads.QueryRowContext(t.Context(),
			"SELECT GROUP_CONCAT(CONCAT_WS('|', "+columns+") ORDER BY idempotency_key) FROM "+table+" WHERE user_id = ?", user).Scan(&text))
		fmt.Fprintf(&b, "%s: %s\n", table, text.String)
	}
	return b.String()
}
