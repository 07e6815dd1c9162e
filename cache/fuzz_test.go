package cache

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// FuzzParseInfo: whatever a server says of itself, what is no number is zero, the
// order of lines does not matter, and one line more says one thing more.
func FuzzParseInfo(f *testing.F) {
	f.Add("# Server\r\nrun_id:abc\r\nevicted_keys:3\r\nused_memory:10\r\nmaxmemory:20\r\ncmdstat_flushall:calls=2,usec=1\r\ncmdstat_flushdb:calls=1\r\n")
	f.Add("evicted_keys:99999999999999999999\nmaxmemory:-1\nused_memory")
	f.Add("cmdstat_flushall:calls=x\ncmdstat_flushall:2\n:::\n\r\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		s := parseInfo(text)
		require.Len(t, s.nodes, 1)
		more := parseInfo(text + "\nmaxmemory:12345\nrun_id:node\nevicted_keys:7\n")
		require.EqualValues(t, 12345, more.memoryMost)
		require.Equal(t, s.memory, more.memory)
		require.Contains(t, more.nodes, "node")
		require.EqualValues(t, 7, more.nodes["node"].evicted)
	})
}

// FuzzLiterally: a prefix with the signs of patterns matches itself and no other.
// A pattern of [path.Match] and one of Redis are alike, but for the slash.
func FuzzLiterally(f *testing.F) {
	f.Add("oncegate", "oncegate")
	f.Add("a*b", "axb")
	f.Add("a[bc]", "ab")
	f.Add(`a\?`, `a?`)
	f.Fuzz(func(t *testing.T, prefix, other string) {
		same, err := path.Match(literally(prefix), prefix)
		require.NoError(t, err)
		require.True(t, same, prefix)
		if other != prefix && strings.ToValidUTF8(other, "") == other && strings.ToValidUTF8(prefix, "") == prefix {
			same, err = path.Match(literally(prefix), other)
			require.NoError(t, err)
			require.False(t, same, "%q: %q", prefix, other)
		}
	})
}

// FuzzName: a name has one form, nothing of the caller's is in it, its slot is the
// user's, and no other user or key has it.
func FuzzName(f *testing.F) {
	f.Add("alice", "k1", "bob", "k1")
	f.Add("a", "b:c", "a:b", "c")
	f.Add("a}:{b", "c", "a", "}:{b:c")
	f.Add("{x}", "{y}", "{x", "}{y}")
	n := newNamer("oncegate", []byte("a key for fuzzing"))
	f.Fuzz(func(t *testing.T, user, key, otherUser, otherKey string) {
		for _, id := range []string{user, otherUser} {
			if !order.ValidUserID(id) {
				return
			}
		}
		k, err := order.ParseKey(key)
		other, otherErr := order.ParseKey(otherKey)
		if err != nil || otherErr != nil {
			return
		}
		name, otherName := n.name(user, k), n.name(otherUser, other)
		require.Regexp(t, `^oncegate:1:\{[A-Za-z0-9_-]{16}\}:[A-Za-z0-9_-]{24}$`, name)
		require.Equal(t, user == otherUser && k == other, name == otherName, fmt.Sprint(user, k, otherUser, other))
		slot := func(name string) string { return name[strings.IndexByte(name, '{'):strings.IndexByte(name, '}')] }
		require.Equal(t, user == otherUser, slot(name) == slot(otherName))
	})
}
