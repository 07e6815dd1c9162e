package wire

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is longer than a busy machine stands still.
const patience = time.Minute

func client(t *testing.T, target string, timeout time.Duration) *Client {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	c, err := New(Options{Target: u, Timeout: timeout})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func post() *Request {
	return &Request{Method: "POST", Path: "/", Fields: []Field{{"Idempotency-Key", "k"}}, Body: []byte(`{"a":1}`)}
}

// breaker counts the requests that it reads whole, and breaks every third
// connection after it read a request instead of answering.
type breaker struct {
	net.Listener
	received, answered atomic.Int64
	wg                 sync.WaitGroup
}

func newBreaker(t *testing.T) *breaker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &breaker{Listener: l}
	b.wg.Go(b.serve)
	t.Cleanup(func() { _ = l.Close(); b.wg.Wait() })
	return b
}

func (b *breaker) serve() {
	for {
		c, err := b.Accept()
		if err != nil {
			return
		}
		b.wg.Go(func() {
			defer func() { _ = c.Close() }()
			br := bufio.NewReader(c)
			for {
				r, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					return
				}
				if b.received.Add(1)%3 == 0 {
					return
				}
				if _, err := io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
					return
				}
				b.answered.Add(1)
			}
		})
	}
}

func TestSentAgreesWithReceivedWhenConnectionsBreak(t *testing.T) {
	t.Parallel()
	b := newBreaker(t)
	c := client(t, "http://"+b.Addr().String(), patience)
	var answered, broken atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 150 {
				switch x := c.Do(context.Background(), post(), 0); x.Fault {
				case NoFault:
					answered.Add(1)
				case FaultBroken:
					broken.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1200, c.Counters().Sent)
	require.EqualValues(t, 1200, b.received.Load(), "a request was sent again, or never arrived")
	require.EqualValues(t, 400, broken.Load())
	require.EqualValues(t, 800, answered.Load())
}

// The control: the standard client sends such requests again, which is why it
// is not used. Should this ever fail, the standard client has changed.
func TestStandardClientResendsSilently(t *testing.T) {
	t.Parallel()
	b := newBreaker(t)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	calls := 0
	for range 30 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+b.Addr().String(), http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Idempotency-Key", "k")
		calls++
		if resp, err := tr.RoundTrip(r); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	require.Greater(t, b.received.Load(), int64(calls))
}

func TestIdleConnectionClosedByTheServerIsNotALostRequest(t *testing.T) {
	t.Parallel()
	var received atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		received.Add(1)
		_, _ = io.WriteString(w, "ok")
	}))
	defer s.Close()
	c := client(t, s.URL, patience)
	require.Equal(t, NoFault, c.Do(t.Context(), post(), 0).Fault)
	s.CloseClientConnections()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.idle) == 1 && !alive(c.idle[0].raw)
	}, patience, time.Millisecond)
	x := c.Do(t.Context(), post(), 0)
	require.Equal(t, NoFault, x.Fault, x.Err)
	require.Equal(t, "ok", string(x.Body))
	require.EqualValues(t, 2, received.Load())
	require.Equal(t, Counters{Sent: 2, Dials: 2, Stale: 1}, c.Counters())
}

func TestTimeoutIsCountedWithItsTime(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	c := client(t, s.URL, patience)
	var x Exchange
	require.Eventually(t, func() bool { // the time may be over before it is written
		x = c.Do(t.Context(), post(), 50*time.Millisecond)
		return x.Wrote
	}, patience, time.Millisecond)
	require.Equal(t, FaultTimeout, x.Fault)
	require.GreaterOrEqual(t, x.Done.Sub(x.Sent), 50*time.Millisecond)
}

func TestCloseEndsARequestUnderWay(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-release }))
	defer s.Close()
	defer close(release)
	c := client(t, s.URL, patience)
	go func() { <-arrived; c.Close() }()
	require.Equal(t, FaultAborted, c.Do(t.Context(), post(), 0).Fault)
	require.Equal(t, FaultAborted, c.Do(t.Context(), post(), 0).Fault)
}

func TestRefusedConnectionSendsNothing(t *testing.T) {
	t.Parallel()
	c := client(t, "http://127.0.0.1:1", patience) // the kernel gives nobody this port
	x := c.Do(t.Context(), post(), 0)
	require.Equal(t, FaultRefused, x.Fault)
	require.False(t, x.Wrote)
	require.True(t, x.Sent.IsZero())
}

func TestLimitsOfThisMachineAreToldApart(t *testing.T) {
	t.Parallel()
	for _, e := range []syscall.Errno{syscall.EADDRNOTAVAIL, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS} {
		require.Equal(t, FaultClient, classify(&dialError{&net.OpError{Op: "dial", Err: e}}), e.Error())
	}
	require.Equal(t, FaultBroken, classify(&net.OpError{Op: "read", Err: syscall.ECONNRESET}))
	require.Equal(t, FaultBroken, classify(io.ErrUnexpectedEOF))
}

func TestTheSameSocketsServeManyRequests(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer s.Close()
	c := client(t, s.URL+"/base/", patience)
	for range 20 {
		x := c.Do(t.Context(), post(), 0)
		require.Equal(t, 200, x.Status)
		require.JSONEq(t, `{"a":1}`, string(x.Body))
	}
	require.EqualValues(t, 1, c.Counters().Dials)
}

func TestTLSTargetsWork(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
	defer s.Close()
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	trusted := s.Client().Transport.(*http.Transport).TLSClientConfig
	c, err := New(Options{Target: u, Timeout: patience, TLS: trusted})
	require.NoError(t, err)
	defer c.Close()
	for range 2 {
		x := c.Do(t.Context(), post(), 0)
		require.NoError(t, x.Err)
		require.Equal(t, "ok", string(x.Body))
	}
	require.EqualValues(t, 1, c.Counters().Dials)
	plain := client(t, s.URL, patience)
	require.Equal(t, FaultBroken, plain.Do(t.Context(), post(), 0).Fault, "an untrusted certificate must be refused")
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var x Exchange
		r, w := net.Pipe()
		go func() { _, _ = w.Write(b); _ = w.Close() }()
		err := x.read(&conn{Conn: r, raw: r, br: bufio.NewReader(r)}, "POST")
		_ = r.Close()
		if err == nil && (x.Status < 100 || x.Status > 999) {
			t.Fatalf("status %d", x.Status)
		}
	})
}
