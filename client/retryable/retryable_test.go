package retryable_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/client/retryable"
)

// played is what came of one request to a server that plays its scenes in turn.
type played struct {
	keys   []string
	status int
	body   string
	waits  []time.Duration // that Backoff chose; nobody sits them out
	err    error
}

func play(t *testing.T, scenes ...http.HandlerFunc) played {
	t.Helper()
	var mu sync.Mutex
	var p played
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n := len(p.keys)
		p.keys = append(p.keys, r.Header.Get("Idempotency-Key"))
		mu.Unlock()
		scenes[min(n, len(scenes)-1)](w, r)
	}))
	t.Cleanup(server.Close)

	c := retryablehttp.NewClient()
	c.Logger = nil
	c.RetryWaitMin, c.RetryWaitMax, c.RetryMax = time.Millisecond, 5*time.Millisecond, 3
	c.CheckRetry = retryable.CheckRetry
	c.Backoff = func(shortest, longest time.Duration, attempt int, resp *http.Response) time.Duration {
		p.waits = append(p.waits, retryable.Backoff(shortest, longest, attempt, resp))
		return 0
	}
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	c.HTTPClient.CheckRedirect = retryable.CheckRedirect
	r, err := retryablehttp.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/api/orders", []byte(`{}`))
	require.NoError(t, err)
	r.Header.Set("Idempotency-Key", "k")
	resp, err := c.Do(r)
	mu.Lock()
	defer mu.Unlock()
	if p.err = err; err != nil {
		return p
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	p.status, p.body = resp.StatusCode, string(body)
	return p
}

func made(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "made")
}

func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func problem(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const (
	running = `{"status":409,"code":"REQUEST_IN_PROGRESS","outcome":"unknown","retryable":true,"retry_after_ms":1}`
	reused  = `{"status":409,"code":"IDEMPOTENCY_KEY_REUSED","outcome":"rejected","retryable":false}`
	fault   = `{"status":500,"code":"INTERNAL","outcome":"rejected","retryable":false}`
)

func TestTheGatewaysWordDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scenes   []http.HandlerFunc
		status   int
		attempts int
	}{
		"still running":          {[]http.HandlerFunc{problem(409, running), made}, 201, 2},
		"key of another content": {[]http.HandlerFunc{problem(409, reused)}, 409, 1},
		"a fault that stays":     {[]http.HandlerFunc{problem(500, fault)}, 500, 1},
		"connection cut":         {[]http.HandlerFunc{cut, made}, 201, 2},
		"running for ever":       {[]http.HandlerFunc{problem(409, running)}, 409, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, c.scenes...)
			require.NoError(t, p.err)
			require.Equal(t, c.status, p.status)
			require.NotEmpty(t, p.body, "the answer can still be read")
			require.Len(t, p.keys, c.attempts)
			for _, key := range p.keys {
				require.Equal(t, "k", key)
			}
		})
	}
}

func TestACallerWhoHasHadEnoughEndsIt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	again, err := retryable.CheckRetry(ctx, nil, io.ErrUnexpectedEOF)
	require.False(t, again)
	require.ErrorIs(t, err, context.Canceled)
}

func TestPausesHaveJitterAndRespectTheGateway(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 50 {
		p := retryable.Backoff(time.Second, 10*time.Second, 2, nil)
		require.LessOrEqual(t, p, 4*time.Second)
		seen[p] = true
	}
	require.Greater(t, len(seen), 40)

	recorder := httptest.NewRecorder()
	problem(409, `{"status":409,"code":"REQUEST_IN_PROGRESS","outcome":"unknown","retryable":true,"retry_after_ms":2500}`)(recorder, nil)
	p := retryable.Backoff(time.Second, 10*time.Second, 0, recorder.Result())
	require.GreaterOrEqual(t, p, 2500*time.Millisecond)
	require.LessOrEqual(t, p, 3500*time.Millisecond)
}

// go-retryablehttp empties and closes an answer before it asks how long to wait.
func TestTheGatewaysPauseIsKeptWhenTheAnswerIsDrained(t *testing.T) {
	t.Parallel()
	p := play(t, problem(409, `{"status":409,"code":"REQUEST_IN_PROGRESS","outcome":"unknown","retryable":true,"retry_after_ms":60000}`), made)
	require.NoError(t, p.err)
	require.Equal(t, http.StatusCreated, p.status)
	require.Len(t, p.waits, 1)
	require.GreaterOrEqual(t, p.waits[0], time.Minute)
}

// An order and its key go to the gateway, and to nobody whom an answer names.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		p := play(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", status) })
		require.NoError(t, p.err)
		require.Equal(t, status, p.status)
		require.Len(t, p.keys, 1)
	}
}
