package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/internal/loopback"
)

// unread is the end of a pipe that nobody reads until read is closed.
type unread struct {
	read chan struct{}
	mu   sync.Mutex
	text strings.Builder
}

func (u *unread) Write(b []byte) (int, error) {
	<-u.read
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.text.Write(b)
}

func (u *unread) String() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.text.String()
}

// A collector of logs that hangs keeps no answer back, and no gateway from ending.
func TestALogThatNobodyReadsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	var addrs [2]string
	for i := range addrs {
		port, err := loopback.Reserve()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, port.Release()) })
		addrs[i] = port.Addr()
	}
	cfg := embedded(t.TempDir())
	stderr := &unread{read: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, environment{
			args:   []string{"serve", "--data_dir", cfg.DataDir, "--http.listen", addrs[0], "--admin.listen", addrs[1]},
			stdout: &strings.Builder{}, stderr: stderr,
		})
	}()
	eventually(t, "it never takes orders", func() bool {
		resp, err := http.Get("http://" + addrs[0] + "/readyz")
		if err != nil {
			return false
		}
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode == http.StatusOK
	})
	alice := newCustomer(t, cfg, "alice")
	a, err := alice.try(http.MethodPost, "http://"+addrs[0]+"/api/orders", "k", potsticker)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	stop()
	select {
	case code := <-ended:
		require.Equal(t, exitOK, code)
	case <-time.After(time.Minute):
		require.Fail(t, "it does not end")
	}
	close(stderr.read)
	eventually(t, "what was written is not told", func() bool {
		return strings.Contains(stderr.String(), "taking orders") && strings.Contains(stderr.String(), "stopped")
	})
}

func TestLinesThatNobodyTookAreCounted(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			to := &unread{read: make(chan struct{})}
			log, r, err := newRelayedLogger(to, configs.Log{Level: "info", Format: format}, new(slog.LevelVar))
			require.NoError(t, err)
			registry, err := newRegistry(r.lost.Load)
			require.NoError(t, err)
			require.Zero(t, lost(t, registry))
			const written = relayRoom + 100
			for i := range written {
				log.InfoContext(t.Context(), "a line", "number", i)
			}
			n := lost(t, registry)
			require.GreaterOrEqual(t, n, 99.0, "one may have been taken")
			close(to.read)
			eventually(t, "the log never ends", func() bool {
				r.end()
				select {
				case <-r.over:
					return true
				default:
					return false
				}
			})
			text := to.String()
			require.Equal(t, written-int(n), strings.Count(text, "a line"), "nothing else is lost")
			require.Contains(t, text, "lines of the log were lost: nobody took them")
			require.Regexp(t, fmt.Sprintf(`"?lines"?[:=]%.0f\b`, n), text)
		})
	}
}

// A disk that is full takes none either.
func TestLinesThatCannotBeWrittenAreCounted(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	defer func() { require.NoError(t, writer.Close()) }()
	log, r, err := newRelayedLogger(writer, configs.Log{Level: "info", Format: "json"}, new(slog.LevelVar))
	require.NoError(t, err)
	require.True(t, signal.Ignored(syscall.SIGPIPE), "a reader of stderr who has gone would end the process")
	for range 7 {
		log.InfoContext(t.Context(), "a line")
	}
	eventually(t, "they are not counted", func() bool { return r.lost.Load() == 7 })
	require.ErrorIs(t, r.endWith(errors.New("the port is taken")), errSilent)
	eventually(t, "nor is the last word", func() bool { return r.lost.Load() == 8 })
}

// A command that fails ends, too.
func TestALogThatNobodyReadsKeepsNoCommandFromFailing(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	stderr := &unread{read: make(chan struct{})}
	code := run(t.Context(), environment{
		args:   []string{"serve", "--data_dir", t.TempDir(), "--http.listen", taken.Addr().String(), "--admin.listen", "127.0.0.1:0"},
		stdout: &strings.Builder{}, stderr: stderr,
	})
	require.Equal(t, exitFailed, code)
	close(stderr.read)
	eventually(t, "the reason is not told", func() bool {
		return strings.Contains(stderr.String(), "oncegate: ") && strings.Contains(stderr.String(), "address already in use")
	})
}

// lost reads the metric.
func lost(t *testing.T, registry *prometheus.Registry) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "oncegate_log_lines_lost_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	require.Fail(t, "there is no such metric")
	return 0
}
