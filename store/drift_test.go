package store

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order/ordertest"
)

// What keeps a second order out must be there, byte for byte, when the gateway
// starts.
func TestASchemaThatDriftedIsRefused(t *testing.T) {
	t.Parallel()
	for change, says := range map[string]string{
		"ALTER TABLE orders ADD KEY spare (user_id), DROP KEY uk_orders_key":                         "the table orders has no unique index on (user_id,idempotency_key,line_no)",
		"ALTER TABLE orders ADD KEY spare (user_id), DROP KEY uk_orders_number":                      "the table orders has no unique index on (user_id,external_order_no)",
		"ALTER TABLE orders DROP KEY idx_orders_user":                                                "the table orders has no index idx_orders_user",
		"ALTER TABLE idempotency_records DROP KEY idx_records_created":                               "the table idempotency_records has no index idx_records_created",
		"ALTER TABLE order_events DROP KEY uk_events_claimed":                                        "the table order_events has no unique index on (claimed_reference): nothing would stop a second effect of a payment",
		"ALTER TABLE consumed_messages DROP PRIMARY KEY":                                             "the table consumed_messages has no unique index on (consumer,message_id)",
		"ALTER TABLE stock MODIFY sku VARCHAR(64) COLLATE utf8mb4_general_ci":                        "stock.sku has the collation utf8mb4_general_ci",
		"ALTER TABLE order_events MODIFY claimed_reference VARCHAR(128) COLLATE utf8mb4_general_ci":  "order_events.claimed_reference has the collation utf8mb4_general_ci",
		"ALTER TABLE order_events MODIFY provider_reference VARCHAR(128) COLLATE utf8mb4_general_ci": "order_events.provider_reference has the collation utf8mb4_general_ci",
		"ALTER TABLE parked_messages MODIFY message_id VARCHAR(255) COLLATE utf8mb4_general_ci":      "parked_messages.message_id has the collation utf8mb4_general_ci",
		"ALTER TABLE orders DROP COLUMN external_order_no, DROP KEY uk_orders_number":                "the column orders.external_order_no is missing",
		"DELETE FROM goose_db_version WHERE version_id > 1":                                          "schema",
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, dsn string) {
				onRawSession(t, dsn, func(db *sql.DB) {
					_, err := db.ExecContext(t.Context(), change)
					require.NoError(t, err)
				})
				_, err := Open(t.Context(), Options{DSN: dsn, Renderer: ordertest.PlainRenderer{}})
				require.ErrorContains(t, err, says)
			})
		})
	}
}

// Whatever the DSN says, and however it spells it, code pins what the decision
// rests on.
func TestSessionsArePinnedWhateverTheDSNSays(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		c, err := mysql.ParseDSN(dsn)
		require.NoError(t, err)
		c.ClientFoundRows, c.InterpolateParams, c.MultiStatements = false, false, true
		require.NoError(t, c.Apply(mysql.Charset("latin1", "latin1_swedish_ci"), mysql.TimeTruncate(time.Hour)))
		c.Params = map[string]string{
			"SQL_MODE": "''", "@@time_zone": "'+05:00'", "session autocommit": "1", "`innodb_lock_wait_timeout`": "50",
			"@@LOCAL.wait_timeout": "28800", "Unique_Checks": "0", "foreign_key_checks": "0",
			"character_set_client": "latin1", "max_sort_length": "512", "sql_select_limit": "1",
		}
		h := openHarness(t, Options{DSN: c.FormatDSN(), LockWaitTimeout: time.Second, WaitTimeout: 20 * time.Second})
		isolation := "@@transaction_isolation"
		if h.d.name == "mariadb" {
			isolation = "@@tx_isolation"
		}
		for name, want := range map[string]string{
			isolation: "READ-COMMITTED", "@@time_zone": "+00:00", "@@innodb_lock_wait_timeout": "1", "@@wait_timeout": "20", "@@autocommit": "0",
			"@@unique_checks": "1", "@@foreign_key_checks": "1", "@@sql_select_limit": "18446744073709551615",
			"@@character_set_client": "utf8mb4", "@@character_set_connection": "utf8mb4", "@@character_set_results": "utf8mb4",
			"@@max_sort_length": "512", // which is the DSN's to say
		} {
			var got string
			require.NoError(t, h.writes.QueryRowContext(t.Context(), "SELECT "+name).Scan(&got))
			require.Equal(t, want, got, name)
		}
		_, err = h.writes.ExecContext(t.Context(), "INSERT INTO stock (sku, available, supplied) VALUES (REPEAT('x', 65), 1, 1)")
		require.Error(t, err, "a key that is too long must never be cut")
		var at time.Time
		require.NoError(t, h.reads.QueryRowContext(t.Context(), "SELECT CAST(? AS DATETIME(3))", time.Date(2026, 11, 29, 12, 34, 56, 789e6, time.UTC)).Scan(&at))
		require.Equal(t, 789*time.Millisecond, time.Duration(at.Nanosecond()), "a time must never be cut")
	})
}

// A server closes sessions that are idle, and what is sent into one must not
// become anybody's answer.
func TestSessionsThatTheServerClosedGoUnnoticed(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn, Workers: 1, LockWaitTimeout: time.Second, ReadTimeout: 2 * time.Second, WaitTimeout: 3 * time.Second})
		account(t, h, "ann", 1_000_00)
		var session int
		for i := range 3 {
			require.Equal(t, "created", kinds(submit(t, h, command(t, "ann", fmt.Sprint("k", i), potsticker(1)))()))
			require.NoError(t, h.writes.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&session))
			onRawSession(t, dsn, func(db *sql.DB) {
				require.Eventually(t, func() bool {
					var left int
					err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = ?", session).Scan(&left)
					return err == nil && left == 0
				}, time.Minute, 50*time.Millisecond, "idle sessions end")
			})
		}
		require.Equal(t, "created", kinds(submit(t, h, command(t, "ann", "k3", potsticker(1)))()))
		n, err := h.CountOrders(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, 4, n)
	})
}

// onRawSession gives a test a session that nothing is pinned in.
func onRawSession(t *testing.T, dsn string, use func(*sql.DB)) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	use(db)
}

func TestNoVariableIsSetTwice(t *testing.T) {
	t.Parallel()
	for _, param := range []string{
		"autocommit", "AUTOCOMMIT", "`autocommit`", "@@autocommit", "@@session.autocommit", "@@SESSION.AutoCommit",
		"@@local.autocommit", "session autocommit", "LOCAL  autocommit", "@@session . autocommit", "@@session.`autocommit`",
		"tx_isolation", "transaction_isolation", "SESSION Transaction_Isolation", "collation_connection",
	} {
		o := Options{DSN: "u@tcp(a:1)/d", LockWaitTimeout: time.Second, WaitTimeout: time.Minute}
		c := o.session(&mysql.Config{Params: map[string]string{param: "1", "session_track_gtids": "own_gtid"}}, false, false)
		want := o.variables(false, false)
		want["session_track_gtids"] = "own_gtid"
		require.Equal(t, want, c.Params, param)
	}
}

// A step of the schema can be taken back, and be made again.
func TestTheNewestStepOfTheSchemaCanBeTakenBack(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		require.NoError(t, withProvider(t.Context(), Options{DSN: dsn}, func(_ *dialect, _ *sql.DB, p *goose.Provider) error {
			_, down := p.Down(t.Context())
			_, up := p.Up(t.Context())
			return errors.Join(down, up)
		}))
		h := openHarness(t, Options{DSN: dsn})
		if h.d.name == "sqlite" {
			return
		}
		indexes, err := h.indexes(t.Context())
		require.NoError(t, err)
		require.False(t, slices.ContainsFunc(indexes, func(i index) bool { return i.name == "idx_consumed_created" }), "nothing reads it")
	})
}
