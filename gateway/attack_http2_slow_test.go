package gateway_test

import (
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/oncegate/oncegate/gateway"
)

// The time-out for a request is that of a stream, however many others there are.
func TestStreamsWhoseBodiesDoNotEndAreAnswered(t *testing.T) {
	t.Parallel()
	k, config := newTLSKit(t, func(o *gateway.Options) { o.Timeouts = gateway.Timeouts{Read: 300 * time.Millisecond} })
	for name, drop := range map[string][]byte{
		"a body that drips":         []byte(" "),
		"frames of nothing":         {},
		"a body that does not come": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dialHTTP2(t, k, config)
			c.ask(t, 1, c.head("k1"), true)
			enough := drip(t, func() error {
				if drop == nil {
					return nil
				}
				return c.WriteData(1, false, drop)
			})
			s := c.until(t, 1, wasReset)
			enough()
			require.Equal(t, "400", s.status)
			require.Contains(t, s.body.String(), "Send the same request again", "it took too long, and nothing is wrong with it")
			require.True(t, s.whole)
			require.Equal(t, http2.ErrCodeNo, *s.reset, "the rest of the body is not wanted")
			c.ask(t, 3, c.encode(http.MethodGet, "/livez"), false)
			require.Equal(t, "200", c.until(t, 3, answered).status, "the connection is good for others")
		})
	}
	t.Cleanup(func() { require.Zero(t, k.ledger.Calls().Decide) })
}

// A header that never ends belongs to no stream: the connection does nothing.
func TestAHeaderInPiecesOverHTTP2IsCutOff(t *testing.T) {
	t.Parallel()
	k, config := newTLSKit(t, func(o *gateway.Options) { o.Timeouts = gateway.Timeouts{Idle: time.Second} })
	c := dialHTTP2(t, k, config)
	require.NoError(t, c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.head("k1")}))
	enough := drip(t, func() error { return c.WriteContinuation(1, false, []byte{0, 1, 'x', 1, 'y'}) })
	hungUp(t, c.conn)
	enough()
	require.Zero(t, k.ledger.Calls().Decide)
}

// A client of HTTP/2 says how much it takes, and may say nothing: of a stream, or of
// the connection, of which the document is more than it has in the beginning.
func TestStreamsThatAreNotReadAreReset(t *testing.T) {
	t.Parallel()
	for name, window := range map[string]uint32{"no window of the stream": 0, "no window of the connection": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, config := newTLSKit(t, func(o *gateway.Options) { o.Timeouts = gateway.Timeouts{Write: time.Second} })
			c := dialHTTP2(t, k, config)
			require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
			asked := 0
			for id := uint32(1); ; id += 2 {
				asked++
				c.ask(t, id, c.encode(http.MethodGet, "/openapi.yaml"), false)
				s := c.until(t, id, wasReset)
				require.Equal(t, http2.ErrCodeInternal, *s.reset)
				require.False(t, s.whole)
				if s.status != "" {
					break
				}
				// The machine stood still, and the time was over before the answer began.
			}
			require.Eventually(t, func() bool { return strings.Count(k.logs.String(), `"route":"/openapi.yaml"`) == asked },
				time.Minute, time.Millisecond, "a handler is left behind")
			require.NoError(t, c.WriteWindowUpdate(0, 1<<20))
			require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}))
			for id := uint32(2*asked + 1); ; id += 2 {
				c.ask(t, id, c.encode(http.MethodGet, "/livez"), false)
				s := c.until(t, id, func(s *returned) bool { return s.whole || s.reset != nil })
				if s.whole {
					require.Equal(t, "200", s.status, "the connection is good for others")
					break
				}
			}
		})
	}
}

// A client that opens every window and then reads nothing fills the buffers of both
// machines. What the streams still have to say waits behind what is not taken, the
// resets of those whose time is over as well: the connection has to end.
func TestHTTP2ClientsThatDoNotReadAreCutOff(t *testing.T) {
	t.Parallel()
	k, config := newTLSKit(t, func(o *gateway.Options) { o.Timeouts = gateway.Timeouts{Write: time.Second} })
	c := dialHTTP2(t, k, config)
	require.NoError(t, c.conn.NetConn().(*net.TCPConn).SetReadBuffer(4<<10))
	const window = 1 << 30
	require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
	require.NoError(t, c.WriteWindowUpdate(0, window))
	tick := time.NewTicker(every)
	defer tick.Stop()
	var err error
	for id := uint32(1); err == nil; id += 2 {
		if id > 2*128 { // no hurry: what is refused has to be written as well
			<-tick.C
		}
		err = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.encode(http.MethodGet, "/openapi.yaml"), EndHeaders: true, EndStream: true})
	}
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the gateway did not hang up")
}
