package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order/ordertest"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// onEngines runs a test on a fresh, migrated database of each engine.
func onEngines(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, sqliteDatabase(t))
	})
	onServers(t, test)
}

// onServers is onEngines for what only a server can show.
func onServers(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	for name, server := range map[string]func(testing.TB) *testserver.SQLServer{
		"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := server(t).Database(t)
			require.NoError(t, Migrate(t.Context(), Options{DSN: dsn}))
			test(t, dsn)
		})
	}
}

func TestLedgerKeepsTheContract(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		ordertest.RunLedger(t, func(t *testing.T, o ordertest.LedgerOptions) ordertest.Harness {
			return openSuite(t, dsn, o)
		})
	})
}
