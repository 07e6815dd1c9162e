//go:build unix

package testserver_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

func TestServerOfAProgramIsGoneAfterItWasGivenBack(t *testing.T) {
	t.Parallel()
	testserver.Redis(t) // skips where there is none to be had
	r, stop, err := testserver.LaunchRedis(t.Context(), "--maxmemory", "8mb")
	require.NoError(t, err)
	require.NotEmpty(t, r.Version)
	require.NoError(t, stop())
	_, err = net.Dial("tcp", r.Addr)
	require.Error(t, err)
}
