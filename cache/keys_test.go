package cache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

func TestNamesAreStableAndHoldNoByteOfTheClient(t *testing.T) {
	t.Parallel()
	n := newNamer("oncegate", macKey())
	name := n.name("alice", "order-2026-11")
	// Other gateways, older ones too, look for this very name.
	require.Equal(t, "oncegate:1:{cwq4vzRSyXvaVSnK}:EyacvFRyJsMZGbgdrpPoziOM", name)
	require.NotContains(t, name, "alice")
	require.NotContains(t, name, "order-2026-11")
}

func TestNamesTellUsersAndKeysApart(t *testing.T) {
	t.Parallel()
	n := newNamer("p", macKey())
	seen := map[string]string{}
	for _, user := range []string{"a", "ab", "A", "a{b}", "{a}b", strings.Repeat("u", order.MaxUserIDLen)} {
		for _, key := range []order.Key{"c", "bc", "C", "{x}", order.Key(strings.Repeat("k", order.MaxKeyLen))} {
			name := n.name(user, key)
			require.Empty(t, seen[name])
			seen[name] = user + " " + string(key)
		}
	}
	require.NotEqual(t, n.name("a", "c"), newNamer("p", []byte("another key of sixteen bytes")).name("a", "c"),
		"who knows no MAC key cannot try out users")
	require.NotEqual(t, n.name("a", "c"), newNamer("q", macKey()).name("a", "c"))
}

// Redis itself is asked for the slots: {} in a user id or key must not steer them.
func TestBracesDoNotSteerTheSlot(t *testing.T) {
	t.Parallel()
	client := testserver.StartRedisNode(t).Client(t)
	n := newNamer("oncegate", macKey())
	slot := func(user string, key order.Key) int64 {
		s, err := client.ClusterKeySlot(t.Context(), n.name(user, key)).Result()
		require.NoError(t, err)
		return s
	}
	own := slot("alice", "k")
	for _, key := range []order.Key{"{1}", "{1}x", "x{bob}y", "{}", "}{", "{{bob}}"} {
		require.Equal(t, own, slot("alice", key), "a user's entries share a slot, whatever the key")
	}
	slots := map[int64]bool{}
	for i := range 40 {
		slots[slot(fmt.Sprintf("{hot}%d", i), "k")] = true
	}
	require.Greater(t, len(slots), 30, "users who have braces in common are spread all the same")
}
