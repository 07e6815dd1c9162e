package store

import (
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order/ordertest"
)

// A server takes nothing back that a step of the schema has made so far.
func TestAnInterruptedMigrationIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]*testserver.SQLServer{"MySQL": testserver.MySQL(t), "MariaDB": testserver.MariaDB(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := 0
			for n := int32(1); ; n++ {
				reached, err := interruptedMigration(t, server.Database(t), n)
				if !reached {
					break
				}
				if err != nil { // some it makes once more itself
					failed++
				}
			}
			require.Greater(t, failed, 15, "it was interrupted after each table and each version")
		})
	}
}

// interruptedMigration loses the connection when the n-th change has been made, and
// reports whether there are so many, and how it ended.
func interruptedMigration(t *testing.T, dsn string, n int32) (reached bool, first error) {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	proxy := faultproxy.NewMySQL(t, c.Addr)
	c.Addr = proxy.Addr()
	var changes atomic.Int32
	proxy.OnQuery(func(q string) faultproxy.Action {
		for _, change := range []string{"CREATE TABLE", "EXECUTE", "INSERT INTO goose_db_version"} {
			if strings.HasPrefix(q, change) && changes.Add(1) == n {
				return faultproxy.Swallow
			}
		}
		return faultproxy.Pass
	})
	first = Migrate(t.Context(), Options{DSN: c.FormatDSN()})
	if changes.Load() < n {
		require.NoError(t, first)
		return false, nil
	}
	require.NoError(t, Migrate(t.Context(), Options{DSN: dsn}), "after change %d", n)
	s, err := Open(t.Context(), Options{DSN: dsn, Renderer: ordertest.PlainRenderer{}})
	require.NoError(t, err, "after change %d", n)
	require.NoError(t, s.Close(t.Context()))
	return true, first
}

// Who waits for a table that is locked has the server wait no longer than it does
// itself: it would be kept there, and another with each attempt.
func TestNobodyWaitsForALockedTableForLong(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		onRawSession(t, dsn, func(db *sql.DB) {
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer func() { require.NoError(t, conn.Close()) }()
			_, err = conn.ExecContext(t.Context(), "LOCK TABLES orders WRITE")
			require.NoError(t, err)
			for _, pool := range []*sql.DB{h.reads, h.writes} {
				var n int
				err := pool.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&n)
				refused, ok := errors.AsType[*mysql.MySQLError](err)
				require.True(t, ok, err)
				require.EqualValues(t, erLockWaitTimeout, refused.Number)
			}
			_, err = conn.ExecContext(t.Context(), "UNLOCK TABLES")
			require.NoError(t, err)
		})
	})
}

// A transaction that stays open holds up a change of its table, and that everybody
// who wants the table.
func TestAChangeOfATableGivesWayToItsReaders(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		reader, err := h.reads.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { _ = reader.Rollback() }()
		var n int
		require.NoError(t, reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM parked_messages").Scan(&n))

		db, err := h.unlimited()
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		const change = "ALTER TABLE parked_messages ADD COLUMN spare INT"
		_, err = db.ExecContext(t.Context(), change)
		refused, ok := errors.AsType[*mysql.MySQLError](err)
		require.True(t, ok, err)
		require.EqualValues(t, erLockWaitTimeout, refused.Number)

		require.NoError(t, reader.Rollback())
		_, err = db.ExecContext(t.Context(), change)
		require.NoError(t, err)
	})
}
