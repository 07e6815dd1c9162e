package faultproxy_test

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
)

func TestProxyPassesBytesAndTheEndOfThem(t *testing.T) {
	t.Parallel()
	conn := dial(t, faultproxy.New(t, echoServer(t, "")).Addr())
	require.Equal(t, "hello", exchange(t, conn, "hello"))
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	rest, err := io.ReadAll(conn)
	require.NoError(t, err, "an orderly end, not a reset")
	require.Empty(t, rest)
}

func TestBlackHoleDeliversWhatItHeldWhenItHeals(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.New(t, echoServer(t, ""))
	conn := dial(t, proxy.Addr())
	require.Equal(t, "before", exchange(t, conn, "before"))

	proxy.BlackHole()
	send(t, conn, "during")
	requireSilence(t, conn)
	proxy.Pass()
	require.Equal(t, "during", receive(t, conn))
}

func TestBlackHoleDeliversAfterTheSenderHasGone(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	upstream := listen(t, func(conn net.Conn) {
		all, _ := io.ReadAll(conn)
		got <- string(all)
	})
	proxy := faultproxy.New(t, upstream)
	conn := dial(t, proxy.Addr())
	proxy.BlackHole()
	send(t, conn, "late")
	require.NoError(t, conn.Close())
	proxy.Pass()
	require.Equal(t, "late", within(t, got))
}

func TestRefuseIsAsIfTheServerHadDied(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.New(t, echoServer(t, ""))
	conn := dial(t, proxy.Addr())
	require.Equal(t, "x", exchange(t, conn, "x"))

	proxy.Refuse()
	requireReset(t, conn)
	_, err := new(net.Dialer).DialContext(t.Context(), "tcp", proxy.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	proxy.Pass()
	require.Equal(t, "y", exchange(t, dial(t, proxy.Addr()), "y"))
}

func TestCutEndsOnlyWhatIsThere(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.New(t, echoServer(t, ""))
	conn := dial(t, proxy.Addr())
	require.Equal(t, "x", exchange(t, conn, "x"))
	proxy.Cut()
	requireReset(t, conn)
	require.Equal(t, "y", exchange(t, dial(t, proxy.Addr()), "y"))
}

func TestDelayHoldsEveryDirectionButNotTheThroughput(t *testing.T) {
	t.Parallel()
	const delay = 100 * time.Millisecond
	proxy := faultproxy.New(t, echoServer(t, ""))
	proxy.Delay(delay)
	conn := dial(t, proxy.Addr())
	begin := time.Now()
	require.Equal(t, "1", exchange(t, conn, "1"))
	require.GreaterOrEqual(t, time.Since(begin), 2*delay)

	// Many in a row take as long as one: they overlap. One after the other they always
	// take as long as all; a busy machine may stand still now and then.
	require.Eventually(t, func() bool {
		begin := time.Now()
		for range 50 {
			send(t, conn, "x")
		}
		_, err := io.CopyN(io.Discard, conn, 50)
		require.NoError(t, err)
		return time.Since(begin) < 50*delay
	}, patience, time.Millisecond)
}

func TestRedirectSendsNewConnectionsElsewhere(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.New(t, echoServer(t, "one:"))
	old := dial(t, proxy.Addr())
	require.Equal(t, "one:x", exchange(t, old, "x"))
	proxy.Redirect(echoServer(t, "two:"))
	require.Equal(t, "two:x", exchange(t, dial(t, proxy.Addr()), "x"))
	require.Equal(t, "one:x", exchange(t, old, "x"))
}

func TestDeadUpstreamResetsTheClient(t *testing.T) {
	t.Parallel()
	down := faultproxy.New(t, "127.0.0.1:1")
	down.Refuse()
	proxy := faultproxy.New(t, down.Addr())
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", proxy.Addr())
	if err == nil { // otherwise the reset was faster than the handshake's end
		defer func() { _ = conn.Close() }()
		_, err = conn.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// patience is how long a test waits for what must come, on a busy machine.
const patience = time.Minute

// echoServer sends back what it receives, after a prefix.
func echoServer(t *testing.T, prefix string) string {
	return listen(t, func(conn net.Conn) {
		buffer := make([]byte, 1024)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			if _, err := conn.Write(append([]byte(prefix), buffer[:n]...)); err != nil {
				return
			}
		}
	})
}

// listen serves connections until the test ends.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				serve(conn)
			}()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		<-accepted
	})
	return listener.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
}

func receive(t *testing.T, conn net.Conn) string {
	t.Helper()
	buffer := make([]byte, 1024)
	n, err := conn.Read(buffer)
	require.NoError(t, err)
	return string(buffer[:n])
}

func exchange(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	send(t, conn, text)
	return receive(t, conn)
}

func requireReset(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// requireSilence finds that nothing arrives for a while. It can only miss a
// fault of the proxy, never invent one.
func requireSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
}

// within receives what must come soon.
func within[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}
