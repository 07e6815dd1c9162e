package store

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
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
