package configs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
)

// Two spellings of one name would be decided by lot, at every start anew.
func TestANameInTwoSpellingsIsRefused(t *testing.T) {
	t.Parallel()
	load := func(content string) (*configs.Loaded, error) {
		file := filepath.Join(t.TempDir(), "c.yaml")
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		return configs.Load(configs.Sources{File: file})
	}
	for _, content := range []string{
		"ttl.receipt: 48h\nttl: {receipt: 24h}\n", "ttl: {receipt: 24h}\nttl.receipt: 24h\n", "ttl.receipt:\nttl: {receipt: 48h}\n",
	} {
		_, err := load(content)
		require.ErrorContains(t, err, "ttl.receipt is given twice", content)
	}
	for _, content := range []string{"ttl.receipt: 48h\n", "ttl.receipt: 48h\nttl: {in_progress: 11s}\n", "ttl.receipt: 48h\nttl:\n"} {
		l, err := load(content)
		require.NoError(t, err, content)
		require.Equal(t, "48h0m0s", l.Config.TTL.Receipt.String(), content)
	}
}
