package mark

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzRead: what was appended is read again, whatever was in the file before and
// could be read; and a note outside of the time is not.
func FuzzRead(f *testing.F) {
	f.Add("2026-08-27T09:00:00Z\tredis down\n", "mysql  killed")
	f.Add("2026-08-27T09:00:00.5+02:00 redis down\n", "\x00")
	f.Add("", " \t")
	f.Add("2026-08-27T09:00:00Z", "x")
	f.Add("2026-08-27T09:00:00Z\ta\r\n", "b\nc")
	f.Fuzz(func(t *testing.T, before, text string) {
		path := filepath.Join(t.TempDir(), "marks")
		require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
		always := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
		there, err := Read(path, time.Time{}, always)
		if err != nil || before != "" && !strings.HasSuffix(before, "\n") {
			return
		}
		at := time.Date(2026, 8, 27, 9, 0, 0, 1, time.UTC)
		if Append(path, Mark{at, text}) != nil {
			return
		}
		all, err := Read(path, time.Time{}, always)
		require.NoError(t, err)
		require.Len(t, all, len(there)+1)
		last := all[len(there)]
		require.True(t, last.At.Equal(at))
		require.Equal(t, strings.Join(strings.Fields(text), " "), last.Text)
		none, err := Read(path, at.Add(1), at.Add(1))
		require.NoError(t, err)
		require.NotContains(t, none, last)
	})
}
