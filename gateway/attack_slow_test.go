package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
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

// every is the pace of the clients that drip: a minute of it, which is as long as a
// test waits, comes nowhere near a limit on a size.
const every = 20 * time.Millisecond

// drip has a client send a little, again and again, until it cannot or the test has
// seen enough. It returns how often that was.
func drip(t testing.TB, send func() error) (enough func() int) {
	t.Helper()
	stop, drops := make(chan struct{}), make(chan int, 1)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				drops <- n
				return
			case <-tick.C:
				if send() != nil {
					drops <- n
					return
				}
			}
		}
	}()
	enough = sync.OnceValue(func() int { close(stop); return <-drops })
	t.Cleanup(func() { enough() })
	return enough
}

// Each of these sends a little, often enough to look alive. A limit on the pause
// between two bytes would never end them, and no limit on a size is near; the limit
// on the whole does.
func TestDrippingClientsAreCutOff(t *testing.T) {
	t.Parallel()
	// A body needs a header that came whole, however slow the machine is.
	heads := newLiveKit(t, func(o *gateway.Options) { o.Timeouts = gateway.Timeouts{ReadHeader: 300 * time.Millisecond} })
	bodies := newLiveKit(t, func(o *gateway.Options) {
		o.Timeouts = gateway.Timeouts{ReadHeader: time.Minute, Read: 300 * time.Millisecond, Idle: 100 * time.Millisecond}
	})
	const (
		nothing = "" // whoever did not ask is not answered
		tooSlow = "Send the same request again; nothing was claimed."
	)
	for name, c := range map[string]struct {
		k                 *kit
		start, drop, said string
	}{
		"a request line":      {heads, "GET /api/orders?", "x", "HTTP/1.1 400 "}, // net/http takes what has come of it for all of it
		"a header line":       {heads, "POST /api/orders HTTP/1.1\r\nX: ", "x", nothing},
		"header lines":        {heads, "POST /api/orders HTTP/1.1\r\n", "X: y\r\n", nothing},
		"nothing at all":      {heads, "", "", nothing},
		"a declared body":     {bodies, request("alice", "Content-Length: 60000", ""), " ", tooSlow},
		"chunks":              {bodies, request("alice", "Transfer-Encoding: chunked", ""), "1\r\n \r\n", tooSlow},
		"a chunk's extension": {bodies, request("alice", "Transfer-Encoding: chunked", "1;"), "x", tooSlow},
		"a webhook":           {bodies, callback(), " ", tooSlow},
		"nothing more":        {bodies, goodMorning, "", "HTTP/1.1 200 OK"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := sayingLittle(t, c.k, c.start, c.drop)
			for giveUp := time.Now().Add(time.Minute); c.k == heads && c.said != nothing && said == "" && time.Now().Before(giveUp); {
				// The machine stood still, and the time was over before any of it was read.
				said = sayingLittle(t, c.k, c.start, c.drop)
			}
			require.Contains(t, said, c.said)
			require.Equal(t, c.said == nothing, said == "", said)
		})
	}
	t.Cleanup(func() {
		require.Zero(t, heads.ledger.Calls().Decide)
		require.Zero(t, bodies.ledger.Calls().Decide)
	})
}

// sayingLittle returns what the gateway says to a client that drips until it hangs up.
func sayingLittle(t *testing.T, k *kit, start, drop string) string {
	t.Helper()
	conn := k.dial()
	_, err := io.WriteString(conn, start)
	require.NoError(t, err)
	enough := drip(t, func() error {
		_, err := io.WriteString(conn, drop)
		return err
	})
	said, err := io.ReadAll(conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the gateway did not hang up")
	require.NoError(t, conn.Close())
	require.Less(t, len(start)+enough()*len(drop), 4<<10, "a chunk's line may be as long, which is the least of all limits")
	return string(said)
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
	const aborted = 100
	for range aborted {
		conn := k.dial()
		_, err := io.WriteString(conn, request("alice", declared(plain), plain[:len(plain)-1]))
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	// Until the last of them was there, none in flight may mean that it is yet to come.
	require.Eventually(t, func() bool { return strings.Count(k.logs.String(), `"route":"/api/orders"`) == aborted }, time.Minute, time.Millisecond)
	require.Equal(t, "in flight 0", inFlight(k))
	require.Equal(t, http.StatusCreated, k.post(plain, key("k1")).status)
	require.Equal(t, 1, k.ledger.CommitCount())
}
