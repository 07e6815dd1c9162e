package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
)

// hungUp reads to the end, and fails when the end does not come.
func hungUp(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the gateway did not hang up")
}

// Each of these sends a little, often enough to look alive. A limit on the pause
// between two bytes would never end them; the limit on the whole does.
func TestDrippingClientsAreCutOff(t *testing.T) {
	t.Parallel()
	k := newLiveKit(t, func(o *gateway.Options) {
		o.Timeouts = gateway.Timeouts{ReadHeader: 50 * time.Millisecond, Read: 100 * time.Millisecond, Idle: 50 * time.Millisecond}
	})
	for name, c := range map[string]struct{ start, drop string }{
		"a request line":      {"GET /api/orders?", "x"},
		"a header line":       {"POST /api/orders HTTP/1.1\r\nX: ", "x"},
		"header lines":        {"POST /api/orders HTTP/1.1\r\n", "X: y\r\n"},
		"a declared body":     {request("alice", "Content-Length: 60000", ""), " "},
		"chunks":              {request("alice", "Transfer-Encoding: chunked", ""), "1\r\n \r\n"},
		"a chunk's extension": {request("alice", "Transfer-Encoding: chunked", "1;"), "x"},
		"a webhook":           {"POST /webhooks/payments HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n", " "},
		"blank lines":         {"", "\r\n"},
		"nothing at all":      {"", ""},
		"nothing more":        {goodMorning, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := k.dial()
			_, err := io.WriteString(conn, c.start)
			require.NoError(t, err)
			var dripping sync.WaitGroup
			if c.drop != "" {
				dripping.Go(func() {
					for err := error(nil); err == nil; {
						_, err = io.WriteString(conn, c.drop)
					}
				})
			}
			hungUp(t, conn)
			require.NoError(t, conn.Close())
			dripping.Wait()
		})
	}
	t.Cleanup(func() { require.Zero(t, k.ledger.Calls().Decide) })
}

// goodMorning is a request after which the connection stays open.
const goodMorning = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"

// A client that never reads fills the buffers of both machines; then the handler
// that writes to it stands still, until the write time-out ends it.
func TestClientsThatDoNotReadAreCutOff(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(o *gateway.Options) { o.Timeouts = gateway.Timeouts{Write: 2 * time.Second} })
	require.NoError(t, k.ledger.SetBalance(context.Background(), "alice", 100_000_00))
	for i := range 100 {
		k.place(fmt.Sprint("k", i))
	}
	unlimited := k.url // on a busy machine the time-out may end a client that reads as well
	k.listen()
	conn := k.dial()
	require.NoError(t, conn.SetReadBuffer(4<<10))
	list := "GET /api/orders?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + mint("alice", "orders") + "\r\n\r\n"
	var asking sync.WaitGroup
	asking.Go(func() {
		var err error
		for err == nil {
			_, err = io.WriteString(conn, list)
		}
		// The gateway hung up on somebody who still had answers to read.
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	})
	asking.Wait()
	require.Eventually(t, func() bool { return inFlight(k) == "in flight 0" }, time.Minute, time.Millisecond, "no handler is left behind")
	k.url = unlimited
	require.Equal(t, http.StatusCreated, k.post(plain, key("afterwards")).status)
}

// A connection that only waits is closed in the end.
func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	k := newLiveKit(t, func(o *gateway.Options) { o.Timeouts = gateway.Timeouts{Idle: 20 * time.Millisecond} })
	conn := k.dial()
	_, err := io.WriteString(conn, goodMorning)
	require.NoError(t, err)
	hungUp(t, conn)
}

// Requests whose clients have left hold no place.
func TestAbortedRequestsGiveTheirPlacesBack(t *testing.T) {
	t.Parallel()
	k := newLiveKit(t)
	k.tune(func(t *gateway.Tuning) { t.MaxInFlight = 8 })
	for range 100 {
		conn := k.dial()
		_, err := io.WriteString(conn, request("alice", declared(plain), plain[:len(plain)-1]))
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	require.Eventually(t, func() bool { return inFlight(k) == "in flight 0" }, time.Minute, time.Millisecond)
	require.Equal(t, http.StatusCreated, k.post(plain, key("k1")).status)
	require.Equal(t, 1, k.ledger.CommitCount())
}
