//go:build linux || darwin

package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/internal/testserver"
)

//nolint:paralleltest // it changes a limit of the process
func TestManyIdleConnectionsKeepNobodyOut(t *testing.T) {
	if testing.Short() {
		t.Skip("takes thousands of connections")
	}
	want := connections(t, idleConnections)
	k := newLiveKit(t, func(o *gateway.Options) { o.Timeouts = gateway.Timeouts{Idle: time.Hour, ReadHeader: time.Hour} })
	addr := strings.TrimPrefix(k.url, "http://")
	idle := make([]net.Conn, 0, want)
	defer func() {
		for _, c := range idle {
			_ = c.Close()
		}
	}()
	for i := range want {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err, "connection %d", i)
		idle = append(idle, conn)
		if i%2 == 0 { // half of them have asked something, half never will
			_, err = io.WriteString(conn, goodMorning)
			require.NoError(t, err)
		}
	}
	buf := make([]byte, 1<<10)
	for i := 0; i < want; i += 2 {
		require.NoError(t, idle[i].SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := idle[i].Read(buf)
		require.NoError(t, err)
	}
	t.Logf("%d connections are open", want)
	require.Equal(t, http.StatusCreated, k.post(plain, key("k1")).status)
	require.Equal(t, "in flight 0", inFlight(k), "an idle connection takes no place among the requests")
}

// connections returns how many connections to itself this process can have, at
// most want, and raises its soft limit for them. With very few of them the test
// says nothing and is skipped.
func connections(t *testing.T, want int) int {
	t.Helper()
	const (
		ends    = 2   // both ends are here
		reserve = 100 // for the rest of the process: it runs alone
		enough  = 500
	)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	needed := uint64(ends*want + reserve)
	if limit.Cur < needed {
		raised := limit
		raised.Cur = min(needed, limit.Max)
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised))
		t.Cleanup(func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) })
		limit = raised
	}
	if limit.Cur < reserve+ends*enough {
		testserver.Demand(t, fmt.Errorf("more than %d open files (RLIMIT_NOFILE): %w", limit.Cur, testserver.ErrForbidden))
	}
	if limit.Cur < needed {
		want = int((limit.Cur - reserve) / ends)
		t.Logf("RLIMIT_NOFILE allows %d connections only", want)
	}
	return want
}
