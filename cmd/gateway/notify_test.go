package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// manager is a service manager: it hears what it is told.
type manager struct {
	t      *testing.T
	socket string
	conn   *net.UnixConn
}

func newManager(t *testing.T) *manager {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &manager{t, socket, conn}
}

// hears returns the next message, or fails when there is none.
func (m *manager) hears() string {
	m.t.Helper()
	require.NoError(m.t, m.conn.SetReadDeadline(time.Now().Add(time.Minute)))
	b := make([]byte, 512)
	n, err := m.conn.Read(b)
	require.NoError(m.t, err)
	return string(b[:n])
}

// hearsNothing requires that no message waits.
func (m *manager) hearsNothing() {
	m.t.Helper()
	require.NoError(m.t, m.conn.SetReadDeadline(time.Now()))
	_, err := m.conn.Read(make([]byte, 512))
	require.Error(m.t, err)
}

func TestServeTellsTheServiceManager(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	var stderr bytes.Buffer
	code := -1
	serving.Go(func() {
		code = run(ctx, environment{
			args:   []string{"serve", "--data_dir", t.TempDir(), "--http.listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0"},
			vars:   []string{"NOTIFY_SOCKET=" + m.socket, "WATCHDOG_USEC=" + strconv.Itoa(20_000)},
			stdout: &bytes.Buffer{}, stderr: &stderr,
		})
	})
	require.Equal(t, stateReady, m.hears())
	require.Equal(t, stateAlive, m.hears())
	require.Equal(t, stateAlive, m.hears())
	stop()
	heard := m.hears()
	for heard == stateAlive {
		heard = m.hears()
	}
	require.Equal(t, stateStopping, heard)
	serving.Wait()
	require.Equal(t, exitOK, code, stderr.String())
}

func TestWithoutAServiceManagerNobodyIsTold(t *testing.T) {
	t.Parallel()
	require.NoError(t, supervisorOf(environment{}).tell(t.Context(), stateReady))
	require.Zero(t, supervisorOf(environment{vars: []string{"WATCHDOG_USEC=soon"}}).watchdog)
}

func TestAServiceManagerThatHasGoneStopsNothing(t *testing.T) {
	t.Parallel()
	s := supervisor{socket: filepath.Join(t.TempDir(), "nobody")}
	require.ErrorContains(t, s.tell(t.Context(), stateReady), "service manager")

	app, err := New(t.Context(), embedded(t.TempDir()), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	cfg := embedded(t.TempDir())
	require.NoError(t, app.supervised(ctx, s, &cfg))
}

func TestAGatewayThatDoesNotAnswerGivesNoSignOfLife(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	s := supervisor{socket: m.socket, watchdog: time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	looked := 0
	s.signsOfLife(ctx, slog.New(slog.DiscardHandler), func(context.Context) error {
		if looked++; looked == 3 {
			cancel()
		}
		return errors.New("it hangs")
	})
	m.hearsNothing()
}
