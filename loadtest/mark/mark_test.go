package mark

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMarksOfTheRunAreFound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "marks")
	now := time.Now()
	got, err := Read(path, now, now)
	require.NoError(t, err)
	require.Empty(t, got)
	require.NoError(t, Append(path, Mark{now.Add(-time.Hour), "yesterday"}))
	require.NoError(t, Append(path, Mark{now, "redis\n down"}))
	require.Error(t, Append(path, Mark{now, " "}))
	got, err = Read(path, now.Add(-time.Second), now.Add(time.Second))
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, "redis down", got[0].Text)
	require.NoError(t, os.WriteFile(path, []byte("noon redis down\n"), 0o600))
	_, err = Read(path, now, now)
	require.ErrorContains(t, err, "line 1")
}
