//go:build unix

package testserver_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

func TestRedisOfAProgramComesBackEmptyAfterAnOutage(t *testing.T) {
	t.Parallel()
	r := testserver.StartRedis(t)
	client := r.Client(t)
	require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())

	end, err := r.Outage(t.Context())
	require.NoError(t, err)
	_, err = net.Dial("tcp", r.Addr)
	require.Error(t, err, "somebody still listens")

	require.NoError(t, end(t.Context()))
	require.Zero(t, client.Exists(t.Context(), "k").Val())
}
