//go:build unix

package testserver

import (
	"os"
	"path/filepath"
	"testing"

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

	next, err := newWorkdir(t.Context(), base)
	require.NoError(t, err)
	require.NoDirExists(t, dead.path)
	require.DirExists(t, live.path)

	require.NoError(t, live.remove())
	require.NoError(t, next.remove())
	left, err := os.ReadDir(filepath.Join(base, "run"))
	require.NoError(t, err)
	require.Empty(t, left)
}
