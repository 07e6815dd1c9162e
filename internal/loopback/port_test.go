//go:build unix

package loopback_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/loopback"
)

func TestReservedPortRefusesUntilSomebodyListens(t *testing.T) {
	t.Parallel()
	port, err := loopback.Reserve()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, port.Release()) })

	for range 3 { // as a server that is restarted
		requireRefused(t, port.Addr())

		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", port.Addr())
		require.NoError(t, err)
		conn, err := dial(t, port.Addr())
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.NoError(t, listener.Close())
	}
	requireRefused(t, port.Addr())
}

func TestTwoReservationsNeverShareAPort(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 200 {
		port, err := loopback.Reserve()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, port.Release()) })
		require.False(t, seen[port.Number()], "port %d was given twice", port.Number())
		seen[port.Number()] = true
	}
}

func dial(t *testing.T, addr string) (net.Conn, error) {
	t.Helper()
	dialer := net.Dialer{Timeout: 5 * time.Second}
	return dialer.DialContext(t.Context(), "tcp", addr)
}

func requireRefused(t *testing.T, addr string) {
	t.Helper()
	_, err := dial(t, addr)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
