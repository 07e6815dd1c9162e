package store

import (
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
)

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
