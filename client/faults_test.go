package client_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/client"
)

const created = `{"order_id":"01a2286a-e558-7220-b18c-54db78b155a4","user_id":"alice","sku":"potsticker","quantity":2,"amount":"39.80","status":"PENDING","created_at":"2026-11-29T17:47:03.906Z"}`

// gatewayIsWell answers as the gateway does to a new order.
func gatewayIsWell(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, created)
}

func refuse(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// script is a server that plays its scenes in turn, and then is well. It keeps
// the keys it was sent.
type script struct {
	*httptest.Server
	mu     sync.Mutex
	keys   []string
	prefer []string
}

func play(t *testing.T, scenes ...http.HandlerFunc) *script {
	t.Helper()
	s := &script{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		s.mu.Lock()
		n := len(s.keys)
		s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
		s.prefer = append(s.prefer, r.Header.Get("Prefer"))
		s.mu.Unlock()
		if n < len(scenes) {
			scenes[n](w, r)
			return
		}
		gatewayIsWell(w)
	}))
	t.Cleanup(s.Close)
	return s
}

// seen returns the keys and the preferences that came, one per request.
func (s *script) seen() (keys, prefer []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys), slices.Clone(s.prefer)
}

func (s *script) requests() int {
	keys, _ := s.seen()
	return len(keys)
}

// oneKey requires that every request had the same key.
func (s *script) oneKey(t *testing.T) {
	t.Helper()
	keys, _ := s.seen()
	for _, key := range keys {
		require.NotEmpty(t, key)
		require.Equal(t, keys[0], key, "the client made a second key")
	}
}

func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func problem(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { refuse(w, status, body) }
}

const (
	running = `{"status":409,"code":"REQUEST_IN_PROGRESS","outcome":"unknown","retryable":true,"safe_new_key":false,"retry_after_ms":1}`
	away    = `{"status":503,"code":"UNAVAILABLE","outcome":"unknown","retryable":true,"safe_new_key":false,"retry_after_ms":1}`
	broke   = `{"status":422,"code":"INSUFFICIENT_BALANCE","title":"The balance is not sufficient","outcome":"rejected","retryable":false,"safe_new_key":true}`
	fault   = `{"status":500,"code":"INTERNAL","title":"An internal error","outcome":"not_committed","retryable":false,"safe_new_key":false,"request_id":"r-1"}`
)

func anyToken(context.Context) (string, error) { return "token", nil }

// quick is a client whose pauses are short.
func quick(t *testing.T, url string, change ...func(*client.Options)) *client.Client {
	t.Helper()
	keys, err := client.OpenFileKeys(t.TempDir())
	require.NoError(t, err)
	o := client.Options{
		BaseURL: url, Token: anyToken, Keys: keys, HTTP: &http.Client{Transport: &http.Transport{}},
		Backoff: client.Backoff{Base: time.Millisecond, Cap: 5 * time.Millisecond},
	}
	for _, c := range change {
		c(&o)
	}
	c, err := client.New(o)
	require.NoError(t, err)
	t.Cleanup(o.HTTP.CloseIdleConnections)
	return c
}

func TestWhatMayBeRetriedIsRetriedWithTheSameKey(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]http.HandlerFunc{
		"connection cut":         cut,
		"first attempt running":  problem(409, running),
		"database away":          problem(503, away),
		"a proxy's bad gateway":  status(502),
		"a proxy's unavailable":  status(503),
		"a proxy's time-out":     status(504),
		"a proxy's own time-out": status(408),
		"a proxy's limit":        status(429),
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			gatewayIsWell(w)
		},
		"a captive portal": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>Welcome to our network</html>")
		},
		"somebody else's JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"ok":true}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := play(t, scene)
			receipt, err := quick(t, server.URL).CreateOrder(t.Context(), "intent", dumplings)
			require.NoError(t, err)
			require.Equal(t, "01a2286a-e558-7220-b18c-54db78b155a4", receipt.Order.ID)
			require.Equal(t, 2, receipt.Attempts)
			server.oneKey(t)
			_, prefer := server.seen()
			require.Equal(t, []string{"", "wait=5"}, prefer, "only a repeat asks the gateway to wait")
		})
	}
}

func TestTheGatewaysRefusalIsFinal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scene http.HandlerFunc
		code  string
		renew bool
	}{
		"not enough balance":     {problem(422, broke), "INSUFFICIENT_BALANCE", true},
		"a fault of the service": {problem(500, fault), "INTERNAL", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := play(t, c.scene)
			shop := quick(t, server.URL)
			_, err := shop.CreateOrder(t.Context(), "intent", dumplings)
			var p *client.Problem
			require.ErrorAs(t, err, &p)
			require.Equal(t, c.code, p.Code)
			require.Equal(t, 1, server.requests())
			require.NotErrorIs(t, err, client.ErrUnsettled)

			err = shop.Renew(t.Context(), "intent", err)
			if !c.renew {
				require.ErrorIs(t, err, client.ErrKeyKept)
				return
			}
			require.NoError(t, err)
			_, err = shop.CreateOrder(t.Context(), "intent", dumplings)
			require.NoError(t, err)
			keys, _ := server.seen()
			require.NotEqual(t, keys[0], keys[1])
		})
	}
}

func TestWhatOthersSaySettlesNothing(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]http.HandlerFunc{
		"a firewall's 403": status(403),
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		},
		"a problem of somebody else's": problem(400, `{"title":"Bad request"}`),
		"a problem with another status": func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusForbidden, broke)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := play(t, scene)
			shop := quick(t, server.URL)
			_, err := shop.CreateOrder(t.Context(), "intent", dumplings)
			require.ErrorIs(t, err, client.ErrUnsettled)
			require.Equal(t, 1, server.requests())
			require.ErrorIs(t, shop.Renew(t.Context(), "intent", err), client.ErrKeyKept)

			receipt, err := shop.CreateOrder(t.Context(), "intent", dumplings)
			require.NoError(t, err)
			require.NotEmpty(t, receipt.Order.ID)
			server.oneKey(t)
		})
	}
}

func TestAnAttemptThatHangsIsGivenUpAndRepeated(t *testing.T) {
	t.Parallel()
	server := play(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	shop := quick(t, server.URL, func(o *client.Options) { o.AttemptTimeout = 100 * time.Millisecond })
	// On a slow machine a good attempt may take too long as well.
	receipt, err := shop.CreateOrder(t.Context(), "intent", dumplings)
	require.NoError(t, err)
	require.GreaterOrEqual(t, receipt.Attempts, 2)
	server.oneKey(t)
}

func TestALongRetryAfterIsNotSatOut(t *testing.T) {
	t.Parallel()
	server := play(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		refuse(w, http.StatusServiceUnavailable, away)
	})
	_, err := quick(t, server.URL).CreateOrder(t.Context(), "intent", dumplings)
	var unsettled *client.UnsettledError
	require.ErrorAs(t, err, &unsettled)
	require.Equal(t, time.Hour, unsettled.RetryAfter)
	require.Equal(t, 1, server.requests(), "an hour is beyond all patience")
	var p *client.Problem
	require.ErrorAs(t, err, &p, "the last word is still there")
	require.Equal(t, "UNAVAILABLE", p.Code)
}

func TestACallerWhoHasHadEnoughIsNotHeldUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := play(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := quick(t, server.URL).CreateOrder(ctx, "intent", dumplings)
	require.ErrorIs(t, err, client.ErrUnsettled)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, server.requests())
}

func TestTheTokenIsAskedForEveryAttempt(t *testing.T) {
	t.Parallel()
	var tokens atomic.Int64
	server := play(t, cut, cut)
	shop := quick(t, server.URL, func(o *client.Options) {
		o.Token = func(context.Context) (string, error) {
			if tokens.Add(1) == 3 {
				return "", errors.New("the issuer is away")
			}
			return "token", nil
		}
	})
	_, err := shop.CreateOrder(t.Context(), "intent", dumplings)
	require.ErrorIs(t, err, client.ErrUnsettled, "two attempts were sent")
	require.ErrorContains(t, err, "the issuer is away")

	shop = quick(t, server.URL, func(o *client.Options) {
		o.Token = func(context.Context) (string, error) { return "", errors.New("no issuer at all") }
	})
	_, err = shop.CreateOrder(t.Context(), "intent", dumplings)
	require.ErrorContains(t, err, "no issuer at all")
	require.NotErrorIs(t, err, client.ErrUnsettled, "nothing was sent")
}

func TestAnUntrustedCertificateIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { gatewayIsWell(w) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	_, err := quick(t, server.URL).CreateOrder(t.Context(), "intent", dumplings)
	var unsettled *client.UnsettledError
	require.ErrorAs(t, err, &unsettled)
	require.Equal(t, 1, unsettled.Attempts)
}

// A token from a file ends with the line, as a rule. net/http refuses to send it,
// which must not look like an order that may have been made.
func TestWhatNoHeaderCanHaveIsSaidBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	server := play(t)
	for token, says := range map[string]string{"token\n": "line end", "": "empty"} {
		shop := quick(t, server.URL, func(o *client.Options) {
			o.Token = func(context.Context) (string, error) { return token, nil }
		})
		_, err := shop.CreateOrder(t.Context(), "intent", dumplings)
		require.ErrorContains(t, err, says)
		require.NotErrorIs(t, err, client.ErrUnsettled)
	}

	shop := quick(t, server.URL, func(o *client.Options) { o.Keys = oneKey("k\r\n1") })
	_, err := shop.CreateOrder(t.Context(), "intent", dumplings)
	require.ErrorContains(t, err, "no header")
	require.NotErrorIs(t, err, client.ErrUnsettled)
	require.Zero(t, server.requests())
}

// oneKey is a store of somebody else's.
type oneKey string

func (k oneKey) Claim(context.Context, string, string) (string, error) { return string(k), nil }
func (k oneKey) Replace(context.Context, string, string, string) error { return nil }

func TestABatchWithoutItsOrdersIsNoReceipt(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"orders without a name": `{"orders":[{}]}`,
		"somebody else's JSON":  `{"ok":true}`,
	} {
		lines := []client.Line{dumplings}
		if name == "somebody else's JSON" {
			lines = nil // as many as there are in it
		}
		server := play(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) },
			problem(http.StatusForbidden, `{"status":403,"code":"FORBIDDEN","outcome":"rejected"}`))
		_, err := quick(t, server.URL).CreateBatch(t.Context(), "intent", lines)
		require.ErrorIs(t, err, client.ErrUnsettled, name)
	}
}

func TestAnAbsurdRetryAfterIsNoInvitation(t *testing.T) {
	t.Parallel()
	server := play(t, problem(503, `{"status":503,"code":"UNAVAILABLE","outcome":"unknown","retryable":true,"retry_after_ms":9223372036854775000}`))
	_, err := quick(t, server.URL).CreateOrder(t.Context(), "intent", dumplings)
	require.ErrorIs(t, err, client.ErrUnsettled)
	require.Equal(t, 1, server.requests())
}
