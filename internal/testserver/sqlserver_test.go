//go:build unix

package testserver_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

type engine struct {
	shared  func(testing.TB) *testserver.SQLServer
	private func(testing.TB) *testserver.SQLServer
	version string
}

func engines() map[string]engine {
	return map[string]engine{
		"MySQL":   {testserver.MySQL, testserver.StartMySQL, `^([89]|\d\d)\.\d+\.\d+`},
		"MariaDB": {testserver.MariaDB, testserver.StartMariaDB, `^1\d\.\d+\.\d+-MariaDB`},
	}
}

func TestSharedServerIsDurableAndGivesEmptyDatabases(t *testing.T) {
	t.Parallel()
	for name, e := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := e.shared(t)
			require.Same(t, server, e.shared(t))
			require.Regexp(t, e.version, server.Version)

			one, two := server.Database(t), server.Database(t)
			require.NotEqual(t, one, two)
			db := open(t, one)
			require.Zero(t, ask[int](t, db, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"))
			require.Equal(t, 1, ask[int](t, db, "SELECT @@innodb_flush_log_at_trx_commit"))
			require.Equal(t, 1, ask[int](t, db, "SELECT @@sync_binlog"))
			require.Equal(t, 1, ask[int](t, db, "SELECT @@log_bin"))
			require.Equal(t, "ROW", ask[string](t, db, "SELECT @@binlog_format"))
			require.Equal(t, 500, ask[int](t, db, "SELECT @@max_connections"))
		})
	}
}

func TestDatabaseIsDroppedWithItsTest(t *testing.T) {
	t.Parallel()
	for name, e := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := e.shared(t)
			var dsn string
			t.Run("uses it", func(t *testing.T) { dsn = server.Database(t) })
			db, err := sql.Open("mysql", dsn)
			require.NoError(t, err)
			require.ErrorContains(t, db.PingContext(t.Context()), "Unknown database")
			require.NoError(t, db.Close())
		})
	}
}

func TestKilledServerComesBackWithItsDataAndAddress(t *testing.T) {
	t.Parallel()
	for name, e := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := e.private(t)
			addr := server.Addr
			db := open(t, server.Database(t))
			execute(t, db, "CREATE TABLE t (n INT PRIMARY KEY)")
			execute(t, db, "INSERT INTO t VALUES (41)")

			server.Kill()
			require.Error(t, db.PingContext(t.Context()))
			server.Restart()
			execute(t, db, "INSERT INTO t VALUES (42)")
			server.Restart() // in an orderly way
			require.Equal(t, 83, ask[int](t, db, "SELECT SUM(n) FROM t"))
			require.Equal(t, addr, server.Addr)
		})
	}
}

func TestFrozenServerAnswersNothingUntilItGoesOn(t *testing.T) {
	t.Parallel()
	for name, e := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := e.private(t)
			db := open(t, server.RootDSN)
			require.Equal(t, 1, ask[int](t, db, "SELECT 1"))

			server.Stop()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, db.PingContext(ctx), context.DeadlineExceeded)
			server.Cont()
			require.Equal(t, 1, ask[int](t, db, "SELECT 1"))
			server.Stop() // a frozen server can be ended, too
		})
	}
}

func TestEveryServerHasAnIdentityOfItsOwn(t *testing.T) {
	t.Parallel()
	one, two := testserver.StartMySQL(t), testserver.StartMySQL(t)
	require.NotEqual(t,
		ask[string](t, open(t, one.RootDSN), "SELECT @@server_uuid"),
		ask[string](t, open(t, two.RootDSN), "SELECT @@server_uuid"))
}

func TestSharedServerCannotBeKilled(t *testing.T) {
	t.Parallel()
	server := testserver.MariaDB(t)
	require.PanicsWithValue(t, "testserver: Kill on a shared server; start a private one", server.Kill)
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

func ask[T any](t *testing.T, db *sql.DB, query string) T {
	t.Helper()
	var answer T
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&answer))
	return answer
}
