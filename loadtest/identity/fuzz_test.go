package identity

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzRead: every user of a file is there once, with a token and a name that are
// one word each, and what is written from them reads the same.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"alice token\n", "# nobody\n\nalice t\r\nbob t", "alice\n", "alice t x\n", "alice t\nalice u\n", "\xef\xbb\xbfalice t\n", "\u00a0a\u2028b\n", "#", "\x00 \x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		users, err := Read(strings.NewReader(s), nil, time.Time{})
		if err != nil {
			require.Empty(t, users)
			return
		}
		var again strings.Builder
		seen := map[string]bool{}
		for _, u := range users {
			require.Len(t, strings.Fields(u.User), 1)
			require.Len(t, strings.Fields(u.Token), 1)
			require.False(t, seen[u.User], u.User)
			seen[u.User] = true
			again.WriteString(u.User + " " + u.Token + "\n")
		}
		same, err := Read(strings.NewReader(again.String()), nil, time.Time{})
		require.NoError(t, err)
		require.Equal(t, users, same)
	})
}
