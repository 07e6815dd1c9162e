package store

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// Servers whose settings may lose answered orders are used, and named: in the log
// and by a metric.
func TestAWeakServerIsNamedAtTheStart(t *testing.T) {
	t.Parallel()
	semiSync := []string{"--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-master-wait-point=AFTER_COMMIT", "--rpl-semi-sync-master-timeout=1000"}
	for name, c := range map[string]struct {
		start func(testing.TB, ...string) *testserver.SQLServer
		args  []string
		weak  []string
	}{
		"MySQL": {
			testserver.StartMySQLNode,
			[]string{"--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0"},
			[]string{"innodb_flush_log_at_trx_commit", "sync_binlog"},
		},
		"MariaDB": {
			testserver.StartMariaDBNode, append(semiSync, "--innodb-flush-log-at-trx-commit=2", "--log-bin=binlog", "--sync-binlog=0"),
			[]string{"innodb_flush_log_at_trx_commit", "sync_binlog", "rpl_semi_sync_master_wait_point", "rpl_semi_sync_master_timeout"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := c.start(t, c.args...).Database(t)
			require.NoError(t, Migrate(t.Context(), Options{DSN: dsn}))
			var log bytes.Buffer
			reg := prometheus.NewRegistry()
			h := openHarness(t, Options{DSN: dsn, Registerer: reg, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			account(t, h, "ann", 1_00)
			require.Equal(t, "created", kinds(submit(t, h, command(t, "ann", "k", potsticker(1_00)))()), "it is used all the same")
			said := log.String()
			for _, setting := range c.weak {
				require.Contains(t, said, setting)
				require.InDelta(t, 1, weakness(t, reg, setting), 0, setting)
			}
			require.Zero(t, weakness(t, reg, "innodb_doublewrite"), "what is sound is not named")
		})
	}
}

// weakness is what the metric says of a setting.
func weakness(t *testing.T, reg *prometheus.Registry, setting string) float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != "oncegate_server_check_weak" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == setting {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("there is no metric of %s", setting)
	return 0
}
