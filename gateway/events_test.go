package gateway_test

import (
	"bufio"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/insight"
)

// stream is an open stream of events.
type stream struct {
	t      *testing.T
	answer *http.Response
	lines  *bufio.Scanner
}

// serveAdmin runs the listener, with a limit for reading and writing that a
// stream must outlive.
func (w *watched) serveAdmin(t *testing.T) {
	t.Helper()
	require.NoError(t, w.admin.Listen(context.Background()))
	served := make(chan error, 1)
	go func() { served <- w.admin.Serve() }()
	t.Cleanup(func() {
		require.NoError(t, w.admin.Shutdown(context.Background()))
		require.NoError(t, <-served)
	})
}

func (w *watched) listen(t *testing.T) *stream {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.admin.Addr().String()+"/admin/v1/events", http.NoBody)
	require.NoError(t, err)
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	return &stream{t, answer, bufio.NewScanner(answer.Body)}
}

// next waits for an event of this name and returns its data; false at the end.
func (s *stream) next(name string) (string, bool) {
	s.t.Helper()
	for s.lines.Scan() {
		if s.lines.Text() == "event: "+name {
			require.True(s.t, s.lines.Scan())
			return s.lines.Text(), true
		}
	}
	return "", false
}

func brief(o *gateway.AdminOptions) {
	o.Timeouts.Read, o.Timeouts.Write = 2*time.Second, 2*time.Second
}

func TestEventsOutliveTheTimeLimitsOfTheListener(t *testing.T) {
	t.Parallel()
	w := newWatched(t, brief)
	w.serveAdmin(t)
	s := w.listen(t)
	for range 4 { // a second apart
		data, ok := s.next("stats")
		require.True(t, ok, "the stream has ended early")
		require.Contains(t, data, `"uptime_seconds":`)
		require.NotContains(t, data, `"history"`)
	}
	w.recorder.BreakerMoved("closed", "open", "timeout")
	data, ok := s.next("breaker")
	require.True(t, ok)
	require.Contains(t, data, `"to":"open"`)
	w.recorder.Conflicted(insight.Conflict{Code: "IDEMPOTENCY_KEY_REUSED"})
	_, ok = s.next("conflict")
	require.True(t, ok)
}

func TestAStopEndsTheStreamsAndDoesNotWaitForThem(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	require.NoError(t, w.admin.Listen(context.Background()))
	served := make(chan error, 1)
	go func() { served <- w.admin.Serve() }()
	s := w.listen(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, w.admin.Shutdown(ctx), "an open stream must not hold the stop up")
	require.NoError(t, <-served)
	_, ok := s.next("never")
	require.False(t, ok)
}

func TestTheEndOfTheRecorderEndsTheStreams(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	w.serveAdmin(t)
	s := w.listen(t)
	w.stop()
	_, ok := s.next("never")
	require.False(t, ok)
}

func TestAStreamTooManyIsRefused(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	for range 32 {
		_, cancel, err := w.recorder.Subscribe()
		require.NoError(t, err)
		t.Cleanup(cancel)
	}
	r := w.ask(here, http.MethodGet, "/admin/v1/events", "")
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Equal(t, "OVERLOADED", r.problem(t).Code)
}
