package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
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
	aloneWithHangup(t) // which it would tell of
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

// TestAReloadIsToldToTheServiceManager is a gateway under Type=notify-reload: the
// manager sends SIGHUP, and waits until the settings are read. Another signal to
// this process would end it, so the channel stands for it.
func TestAReloadIsToldToTheServiceManager(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	path := fileOf(t, t.TempDir(), "ttl: {receipt: 1h}")
	hangup := make(chan os.Signal, 1)
	log := slog.New(slog.DiscardHandler)
	startLive(t, Live{
		Sources: &configs.Sources{File: path}, Hangup: hangup, Reloading: supervisor{socket: m.socket}.reloading(log),
	}, io.Discard)

	var last int64
	for _, c := range []struct{ more, ends string }{
		{"ttl: {receipt: 2h}", stateReady},
		{"ttl: {receipt: 1ms}", stateRefused},
		{"ttl: {receipt: 3h}", stateReady},
	} {
		require.NoError(t, os.WriteFile(path, []byte(yamlOf(filepath.Dir(path), c.more)), 0o600))
		asked := monotonic().Microseconds()
		hangup <- syscall.SIGHUP
		lines := strings.Split(m.hears(), "\n")
		require.Equal(t, "RELOADING=1", lines[0])
		micros, ok := strings.CutPrefix(lines[1], "MONOTONIC_USEC=")
		require.True(t, ok, lines)
		at, err := strconv.ParseInt(micros, 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, at, asked, "an older one would be passed over")
		require.GreaterOrEqual(t, at, last)
		last = at
		require.Equal(t, c.ends, m.hears(), c.more)
	}
	m.hearsNothing()
}

// What the manager shows of the settings is what holds of them by now: a file that
// is followed by itself may be refused, and its correction is no reload.
func TestTheServiceManagerShowsWhetherTheFileIsRefused(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	path := fileOf(t, t.TempDir(), receipt2h)
	startLive(t, Live{
		Sources: &configs.Sources{File: path}, Judged: supervisor{socket: m.socket}.judged(slog.New(slog.DiscardHandler)),
	}, io.Discard)
	for _, c := range []struct{ more, shows string }{
		{"ttl: {receipt: 1ms}", stateKept}, {receipt3h, stateTaking}, {receipt2h, ""}, {"ttl: {receipt: 2ms}", stateKept}, {receipt2h, stateTaking},
	} {
		fresh := path + ".new"
		require.NoError(t, os.WriteFile(fresh, []byte(yamlOf(filepath.Dir(path), c.more)), 0o600))
		require.NoError(t, os.Rename(fresh, path))
		if c.shows != "" {
			require.Equal(t, c.shows, m.hears(), c.more)
		}
	}
	m.hearsNothing()
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

// A manager that takes nothing off its socket holds nobody up: the signs of life, a
// reload and the end wait for what they tell it.
func TestAManagerThatDoesNotListenIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	require.Eventually(t, func() bool {
		return supervisor{socket: m.socket}.tell(t.Context(), stateAlive) != nil
	}, time.Minute, time.Millisecond, "its socket is never full")
}
