//go:build unix

package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/measure"
)

// answering serves what a gateway would say.
func answering(t *testing.T, handle func(r *http.Request) (status int, header map[string]string, body string)) (addr string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, header, body := handle(r)
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func asking(key string) func() request {
	return func() request { return request{drive.Identity{User: "ann", Token: "Bearer x"}, key, orderBody} }
}

// A server that answers nobody before enough have asked at once never answers a
// loop that waits for answers.
func TestOpenLoopDoesNotWaitForAnswers(t *testing.T) {
	t.Parallel()
	const enough = 40
	var asked atomic.Int64
	all := make(chan struct{})
	addr := answering(t, func(*http.Request) (int, map[string]string, string) {
		if asked.Add(1) == enough {
			close(all)
		}
		<-all
		return http.StatusCreated, nil, `{}`
	})
	s := &stream{rate: 400, next: asking("k")}
	loop := &openLoop{addr: addr, ready: 1, periods: 1, period: time.Second, streams: []*stream{s}}
	require.NoError(t, loop.run(t.Context(), func(time.Time) {}))
	got := s.seen(0)
	require.GreaterOrEqual(t, got.due, int64(enough))
	require.Equal(t, got.due, got.Counts[measure.Created])
	require.Zero(t, got.dropped)
	require.GreaterOrEqual(t, got.at(measure.Created, 100)[0], got.at(measure.Created, 50)[0])
	require.NoError(t, got.right("created", measure.Created))
}

func TestOpenLoopTellsStreamsPeriodsAndOutcomesApart(t *testing.T) {
	t.Parallel()
	addr := answering(t, func(r *http.Request) (int, map[string]string, string) {
		switch r.Header.Get("Idempotency-Key") {
		case "replayed":
			return http.StatusCreated, map[string]string{"Idempotent-Replayed": "true"}, `{}`
		case "later":
			return http.StatusServiceUnavailable, map[string]string{"Retry-After": "1"}, `{}`
		case "silent":
			return http.StatusServiceUnavailable, nil, `{}`
		}
		return http.StatusConflict, nil, `{"code":"IDEMPOTENCY_KEY_REUSED"}`
	})
	names := []string{"replayed", "later", "silent", "reused"}
	wants := []measure.Outcome{measure.Replayed, measure.Unavailable, measure.Unavailable, measure.Reused}
	loop := &openLoop{addr: addr, ready: 4, periods: 2, period: 250 * time.Millisecond}
	for _, name := range names {
		loop.streams = append(loop.streams, &stream{rate: 200, next: asking(name)})
	}
	require.NoError(t, loop.run(t.Context(), func(time.Time) {}))
	for i, s := range loop.streams {
		for period := range 2 {
			got := s.seen(period)
			require.Positive(t, got.due, names[i])
			require.Equal(t, got.due, got.Counts[wants[i]], names[i])
			require.Zero(t, got.others(wants[i]), names[i])
			require.Equal(t, names[i] == "silent", got.silent > 0, names[i])
			require.Empty(t, got.at(measure.Created, 50))
			require.ErrorIs(t, got.right("created", measure.Created), errNothingRight)
		}
	}
}

func TestOpenLoopEndsWithItsContext(t *testing.T) {
	t.Parallel()
	addr := answering(t, func(*http.Request) (int, map[string]string, string) { return http.StatusCreated, nil, `{}` })
	ctx, cancel := context.WithCancel(t.Context())
	loop := &openLoop{
		addr: addr, ready: 1, periods: 1, period: time.Hour,
		streams: []*stream{{rate: 100, next: asking("k")}},
	}
	require.ErrorIs(t, loop.run(ctx, func(time.Time) { cancel() }), context.Canceled)
}

func TestInterruptedOpenLoopDoesNotWaitForAnswers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	never := make(chan struct{})
	addr := answering(t, func(*http.Request) (int, map[string]string, string) {
		cancel()
		<-never
		return http.StatusCreated, nil, `{}`
	})
	t.Cleanup(func() { close(never) }) // before the server's end, which waits for it
	s := &stream{rate: 100, next: asking("k")}
	loop := &openLoop{addr: addr, ready: 1, periods: 1, period: time.Hour, streams: []*stream{s}}
	require.ErrorIs(t, loop.run(ctx, func(time.Time) {}), context.Canceled)
	got := s.seen(0)
	require.Equal(t, got.due, got.Counts[measure.Transport])
}

func TestEveryoneIsCalledOnceAndTheFirstErrorEndsIt(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	called := map[int]int{}
	require.NoError(t, everyone(t.Context(), 500, func(_ context.Context, i int) error {
		mu.Lock()
		defer mu.Unlock()
		called[i]++
		return nil
	}))
	require.Len(t, called, 500)
	for i, n := range called {
		require.Equal(t, 1, n, i)
	}
	calls := 0
	err := everyone(t.Context(), 100_000, func(context.Context, int) error {
		mu.Lock()
		defer mu.Unlock()
		calls++
		return fmt.Errorf("no. %d", calls)
	})
	require.ErrorContains(t, err, "no. ")
	require.LessOrEqual(t, calls, atOnce)
}

func TestConnectionsAreHeldOpenAndClosed(t *testing.T) {
	t.Parallel()
	var open atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok"))
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		case http.StateActive, http.StateIdle, http.StateHijacked:
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	require.NoError(t, allowDescriptors(2*80))
	h, err := hold(t.Context(), server.Listener.Addr().String(), 80)
	require.NoError(t, err)
	require.EqualValues(t, 80, open.Load())
	h.close()
	require.Eventually(t, func() bool { return open.Load() == 0 }, testPatience, testTick)

	closing := answering(t, func(*http.Request) (int, map[string]string, string) {
		return http.StatusOK, map[string]string{"Connection": "close"}, "ok"
	})
	h, err = hold(t.Context(), closing, 2)
	h.close()
	require.ErrorContains(t, err, "does not keep connections")
}

func TestMoreDescriptorsThanASystemHasAreRefused(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, allowDescriptors(1<<40), "the hard limit (ulimit -Hn) is")
}
