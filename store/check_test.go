package store

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order/ordertest"
)

func TestSettingsThatMayLoseOrdersAreNamed(t *testing.T) {
	t.Parallel()
	sound := map[string]string{
		"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1", "innodb_doublewrite": "ON",
		"rpl_semi_sync_master_enabled": "ON", "rpl_semi_sync_master_wait_point": "AFTER_SYNC", "rpl_semi_sync_master_timeout": "3600000",
		"rpl_semi_sync_source_enabled": "OFF", "rpl_semi_sync_source_wait_point": "AFTER_COMMIT", "rpl_semi_sync_source_timeout": "10000",
	}
	require.Empty(t, weaknesses(sound))
	for _, weak := range []struct{ setting, value string }{
		{"innodb_flush_log_at_trx_commit", "2"},
		{"sync_binlog", "0"},
		{"innodb_doublewrite", "OFF"},
		{"rpl_semi_sync_master_wait_point", "AFTER_COMMIT"},
		{"rpl_semi_sync_master_timeout", "10000"},
	} {
		vars := maps.Clone(sound)
		vars[weak.setting] = weak.value
		found := weaknesses(vars)
		require.Len(t, found, 1, weak.setting)
		require.NotEmpty(t, found[weak.setting], weak.setting)
		require.True(t, slices.Contains(weakSettings(), weak.setting), "it has a metric")
	}
	vars := maps.Clone(sound)
	vars["rpl_semi_sync_source_enabled"] = "ON"
	require.Len(t, weaknesses(vars), 2, "MySQL's names of the same")
}

// TiDB takes SKIP LOCKED for words and takes no lock: what would be decided then
// rests on nothing.
func TestRowsArePassedOverOnlyWhereThatLocksTheOthers(t *testing.T) {
	t.Parallel()
	for _, server := range []struct {
		version, comment string
		passesOver       bool
	}{
		{"9.7.4", "MySQL Community Server - GPL", true},
		{"8.0.43-34", "Percona Server (GPL), Release 34, Revision e2841f91", true},
		{"8.0.mysql_aurora.3.10.0", "MySQL Community Server (GPL)", true},
		{"8.4.6-google", "(Google)", true},
		{"8.0.30-Vitess", "", true},
		{"10.11.19-MariaDB-ubu2404", "mariadb.org binary distribution", true},
		{"8.0.11-TiDB-v8.5.0", "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible", false},
		{"8.0.32", "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible", false},
	} {
		d := mysqlDialect(serverInfo{version: server.version, tidb: isTiDB(server.version, server.comment)})
		require.Equal(t, server.passesOver, d.passesOver, server.version)
		require.Equal(t, server.passesOver, d.skipLocked == " FOR UPDATE SKIP LOCKED", server.version)
		require.Contains(t, d.skipLocked, d.forUpdate, server.version)
	}
}

// A server that is too old is refused at the start, with what it lacks.
func TestAServerThatCannotPassOverRowsIsRefused(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		c, err := mysql.ParseDSN(dsn)
		require.NoError(t, err)
		proxy := faultproxy.NewMySQL(t, c.Addr)
		c.Addr = proxy.Addr()
		proxy.OnQuery(func(q string) faultproxy.Action {
			if strings.HasSuffix(q, "SKIP LOCKED") {
				return faultproxy.AnswerError{Code: 1064, State: "42000", Message: "You have an error in your SQL syntax"}
			}
			return faultproxy.Pass
		})
		_, err = Open(t.Context(), Options{DSN: c.FormatDSN(), Renderer: ordertest.PlainRenderer{}})
		require.ErrorContains(t, err, "does not know SELECT … FOR UPDATE SKIP LOCKED: MySQL 8.0 or later is needed, or MariaDB 10.6 or later")
	})
}
