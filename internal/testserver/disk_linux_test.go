package testserver

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPowerCutKeepsWhatWasFlushedAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) (*SQLServer, *Disk){"MySQL": StartMySQLOnDisk, "MariaDB": StartMariaDBOnDisk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, disk := start(t)
			require.NoError(t, s.exec(t.Context(), "CREATE DATABASE flushed"))
			unflushed := filepath.Join(disk.mount, "unflushed")
			require.NoError(t, os.WriteFile(unflushed, []byte("x"), 0o600))
			disk.CutPower()
			s.Restart()
			require.NoError(t, s.exec(t.Context(), "DROP DATABASE flushed"), "it is there")
			// Its name may have been flushed with something else.
			if content, err := os.ReadFile(unflushed); !errors.Is(err, os.ErrNotExist) {
				require.NoError(t, err)
				require.Empty(t, content)
			}
		})
	}
}
