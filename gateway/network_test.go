package gateway_test

import (
	"bufio"
	"context"
	"errors"
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
	"github.com/oncegate/oncegate/internal/loopback"
)

// dial opens a raw connection to the gateway.
func (k *kit) dial() *net.TCPConn {
	k.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(k.url, "http://"))
	require.NoError(k.t, err)
	k.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(k.t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return conn.(*net.TCPConn)
}

// reserved is a port that stays the test's own when a gateway has left it.
func reserved(t testing.TB) *loopback.Port {
	t.Helper()
	port, err := loopback.Reserve()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, port.Release()) })
	return port
}

func head(framing string) string {
	return "POST /api/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + mint("alice", "orders") +
		"\r\nIdempotency-Key: k1\r\nContent-Type: application/json\r\n" + framing + "\r\n\r\n"
}

func TestACutBodyThatHappensToBeCompleteIsRefused(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"shorter than declared":   head("Content-Length: 400") + plain,
		"chunks without an end":   head("Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s\r\n", len(plain), plain),
		"chunk cut in its middle": head("Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s", len(plain)+10, plain),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			conn := k.dial()
			_, err := io.WriteString(conn, request)
			require.NoError(t, err)
			require.NoError(t, conn.CloseWrite())
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			defer func() { _ = resp.Body.Close() }()
			require.Equal(t, http.StatusBadRequest, resp.StatusCode)
			require.Equal(t, 0, k.ledger.Calls().Decide)
			full := k.post(plain, key("k1"))
			require.Equal(t, http.StatusCreated, full.status)
			require.Empty(t, full.header.Get("Idempotent-Replayed"))
		})
	}
}

func TestAnEndlessBodyIsRefusedAtItsLimit(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	conn := k.dial()
	_, err := io.WriteString(conn, head("Transfer-Encoding: chunked")+fmt.Sprintf("%x\r\n%s\r\n", len(plain), plain))
	require.NoError(t, err)
	blanks := fmt.Sprintf("%x\r\n%s\r\n", 32<<10, strings.Repeat(" ", 32<<10))
	go func() {
		for range 1000 {
			if _, err := io.WriteString(conn, blanks); err != nil {
				return
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	require.Equal(t, 0, k.ledger.Calls().Decide)
}

func TestAWholeBodyInChunksIsTaken(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	conn := k.dial()
	half := len(plain) / 2
	_, err := io.WriteString(conn, head("Transfer-Encoding: chunked")+
		fmt.Sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", half, plain[:half], len(plain)-half, plain[half:]))
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	require.Equal(t, "true", k.post(plain, key("k1")).header.Get("Idempotent-Replayed"))
}

func TestAClientThatLeavesUndoesNothing(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	arrived := k.ledger.Block()
	conn := k.dial()
	_, err := io.WriteString(conn, head(fmt.Sprint("Content-Length: ", len(plain)))+plain)
	require.NoError(t, err)
	<-arrived
	require.NoError(t, conn.Close())
	k.ledger.Release()
	require.Eventually(t, func() bool { return k.ledger.CommitCount() == 1 }, time.Minute, time.Millisecond)
	r := k.post(plain, key("k1"))
	require.Equal(t, http.StatusCreated, r.status)
	require.Equal(t, "true", r.header.Get("Idempotent-Replayed"))
	require.Equal(t, 1, k.ledger.CommitCount())
}

func TestNobodyIsAnsweredWhenTheClientLeftBeforeAnythingStarted(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	arrived := k.ledger.Block()
	first := make(chan reply, 1)
	go func() { first <- k.post(plain, key("k1")) }()
	<-arrived
	// The copy waits for the first attempt, and its client leaves meanwhile.
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.url+"/api/orders", strings.NewReader(plain))
	require.NoError(t, err)
	for _, h := range []header{as("alice"), key("k1"), with("Content-Type", "application/json")} {
		h(req.Header)
	}
	done := make(chan error, 1)
	go func() {
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		done <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(inFlight(k), " 2") }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Eventually(t, func() bool { return strings.Contains(k.logs.String(), `"status":499`) }, time.Minute, time.Millisecond)
	k.ledger.Release()
	require.Equal(t, http.StatusCreated, (<-first).status)
}

func inFlight(k *kit) string {
	families, _ := k.reg.Gather()
	for _, f := range families {
		if f.GetName() == "oncegate_http_in_flight_requests" {
			return fmt.Sprint("in flight ", f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	return ""
}

func TestShutdownAnswersWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	port := reserved(t)
	k := newKit(t, func(o *gateway.Options) { o.Addr, o.DrainDelay = port.Addr(), time.Millisecond })
	require.NoError(t, k.server.Listen(context.Background()))
	served := make(chan error, 1)
	go func() { served <- k.server.Serve() }()
	k.url = "http://" + k.server.Addr().String()
	arrived := k.ledger.Block()
	first := make(chan reply, 1)
	go func() { first <- k.post(plain, key("k1")) }()
	<-arrived

	stopped := make(chan error, 1)
	go func() { stopped <- k.server.Shutdown(context.Background()) }()
	require.NoError(t, <-served)
	select {
	case <-stopped: //nolint:errcheck // that it came at all is the fault
		t.Fatal("shut down over a request under way")
	default:
	}
	k.ledger.Release()
	require.Equal(t, http.StatusCreated, (<-first).status)
	require.NoError(t, <-stopped)
	_, err := net.Dial("tcp", port.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestShutdownEndsWithItsDeadline(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(o *gateway.Options) { o.DrainDelay = time.Hour })
	require.NoError(t, k.server.Listen(context.Background()))
	served := make(chan error, 1)
	go func() { served <- k.server.Serve() }()
	k.url = "http://" + k.server.Addr().String()
	arrived := k.ledger.Block()
	conn := k.dial()
	_, err := io.WriteString(conn, head(fmt.Sprint("Content-Length: ", len(plain)))+plain)
	require.NoError(t, err)
	<-arrived
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, k.server.Shutdown(ctx), context.DeadlineExceeded)
	require.NoError(t, <-served)
	k.ledger.Release()
	require.Eventually(t, func() bool { return k.ledger.CommitCount() == 1 }, time.Minute, time.Millisecond, "the work goes on")
}

func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(o *gateway.Options) {
		o.Timeouts = gateway.Timeouts{ReadHeader: 20 * time.Millisecond, Read: 30 * time.Millisecond}
	})
	require.NoError(t, k.server.Listen(context.Background()))
	served := make(chan error, 1)
	go func() { served <- k.server.Serve() }()
	t.Cleanup(func() {
		require.NoError(t, errors.Join(k.server.Shutdown(context.Background()), <-served))
	})
	k.url = "http://" + k.server.Addr().String()
	for _, start := range []string{"POST /api/orders HTTP/1.1\r\nHost:", head("Content-Length: 400") + plain} {
		conn := k.dial()
		_, err := io.WriteString(conn, start)
		require.NoError(t, err)
		_, err = io.ReadAll(conn)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		var timeout net.Error
		require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the gateway did not hang up")
	}
	require.Equal(t, 0, k.ledger.Calls().Decide)
}

func TestAnAddressThatIsTakenIsAnError(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	require.NoError(t, k.server.Listen(context.Background()))
	t.Cleanup(func() { require.NoError(t, k.server.Shutdown(context.Background())) })
	other := newKit(t, func(o *gateway.Options) { o.Addr = k.server.Addr().String() })
	require.ErrorContains(t, other.server.Listen(context.Background()), "listen")
}

func TestJoinedCopiesAllGetTheOneAnswer(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	const copies = 64
	start := make(chan struct{})
	replies := make(chan reply, copies)
	for range copies {
		go func() {
			<-start
			replies <- k.post(potstick, key("k1"), with("Prefer", "wait=5"))
		}()
	}
	close(start)
	body, fresh := "", 0
	for range copies {
		r := <-replies
		require.Equal(t, http.StatusCreated, r.status, r.body)
		if body == "" {
			body = r.body
		}
		require.Equal(t, body, r.body)
		require.Equal(t, "wait=5", r.header.Get("Preference-Applied"))
		if r.header.Get("Idempotent-Replayed") == "" {
			fresh++
		}
	}
	require.Equal(t, 1, fresh)
	n, err := k.ledger.CountOrders(context.Background(), "alice")
	require.NoError(t, err)
	require.Equal(t, 1, n)
}
