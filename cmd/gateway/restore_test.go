package main

import (
	"database/sql"
	"net/http"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/store"
)

// TestADatabaseRestoredInPlaceIsBelievedBeforeRedis goes the way of docs/tasks.md:
// the database loses what came after its backup, and is the same server as before,
// so that only the setting tells the gateway not to believe what Redis has.
func TestADatabaseRestoredInPlaceIsBelievedBeforeRedis(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		c := deployed(t, dsn, testserver.StartRedis(t).Addr)
		ann := newCustomer(t, c, "ann")
		order := func(g *running, key string) answer {
			a := ann.post(g, key, potsticker)
			require.Equal(t, http.StatusCreated, a.status, a.body)
			return a
		}
		g := start(t, c)
		kept := order(g, "kept")
		restore := backup(t, dsn)
		lost := order(g, "lost")
		require.NoError(t, g.stopped())
		restore()

		g = start(t, c)
		stale := order(g, "lost")
		require.True(t, stale.replayed(), "without the setting Redis answers with what is gone")
		require.Equal(t, lost.body, stale.body)
		require.NoError(t, g.stopped())

		c.Cache.ConfirmReceipts = true
		g = start(t, c)
		again := order(g, "kept")
		require.True(t, again.replayed())
		require.Equal(t, kept.body, again.body)
		anew := order(g, "lost")
		require.False(t, anew.replayed(), "a new order, and not one that is gone")
		require.NotEqual(t, lost.body, anew.body)
		again = order(g, "lost")
		require.True(t, again.replayed())
		require.Equal(t, anew.body, again.body)
		require.InDelta(t, 1, metric(t, g, `oncegate_anomalies_total{anomaly="receipt_lost"}`), 0)
		require.NoError(t, g.stopped())

		s, err := store.Open(t.Context(), store.Options{DSN: dsn, Renderer: gateway.NewRenderer("")})
		require.NoError(t, err)
		report, err := s.Audit(t.Context(), store.AuditOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		require.EqualValues(t, 2, report.Orders)
		require.NoError(t, s.Close(t.Context()))
	})
}

// backup copies a database, and returns what puts the copy in its place.
func backup(t *testing.T, dsn string) (restore func()) {
	t.Helper()
	parsed, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	db, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	db.SetMaxOpenConns(1) // the variable below is the session's
	exec := func(statement string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	exec("SET foreign_key_checks = 0")
	copies := "`" + parsed.DBName + "_backup`."
	exec("CREATE DATABASE `" + parsed.DBName + "_backup`")
	var names string
	require.NoError(t, db.QueryRowContext(t.Context(),
		"SELECT GROUP_CONCAT(table_name) FROM information_schema.tables WHERE table_schema = DATABASE()").Scan(&names))
	tables := strings.Split(names, ",")
	for _, table := range tables {
		exec("CREATE TABLE " + copies + table + " AS SELECT * FROM " + table) //nolint:unqueryvet // a backup has all
	}
	return func() {
		t.Helper()
		for _, table := range tables {
			exec("DELETE FROM " + table)
			exec("INSERT INTO " + table + " SELECT * FROM " + copies + table) //nolint:unqueryvet // as above
		}
		exec("DROP DATABASE `" + parsed.DBName + "_backup`")
		require.NoError(t, db.Close())
	}
}
