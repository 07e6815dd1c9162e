//go:build unix

package testserver

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWorkdirOfADeadProcessIsSweptAndALiveOneIsKept(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	live, err := newWorkdir(t.Context(), base)
	require.NoError(t, err)
	dead, err := newWorkdir(t.Context(), base)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dead.path, "data"), nil, 0o600))
	require.NoError(t, dead.lock.Close()) // as the kernel does for a killed process

	// A child that is being forked has the lock too, until it is a program.
	require.Eventually(t, func() bool {
		next, err := newWorkdir(t.Context(), base)
		require.NoError(t, err)
		require.NoError(t, next.remove())
		_, err = os.Stat(dead.path)
		return errors.Is(err, os.ErrNotExist)
	}, time.Minute, time.Millisecond, "it is swept")
	require.DirExists(t, live.path)

	require.NoError(t, live.remove())
	left, err := os.ReadDir(filepath.Join(base, "run"))
	require.NoError(t, err)
	require.Empty(t, left)
}
