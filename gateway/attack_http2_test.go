package gateway_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// newTLSKit is a live kit behind TLS, and the client's side of it.
func newTLSKit(t testing.TB, change ...func(*gateway.Options)) (*kit, *tls.Config) {
	t.Helper()
	files := newPair(t)
	certs, err := gateway.NewCertificates(files.cert, files.key, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	k := newLiveKit(t, append(change, func(o *gateway.Options) { o.Certificates = certs })...)
	k.url = strings.Replace(k.url, "http://", "https://", 1)
	return k, &tls.Config{RootCAs: files.pool(t), ServerName: "localhost", MinVersion: tls.VersionTLS12}
}

// busiest counts the orders that are decided, and those that are at once.
type busiest struct {
	gateway.Submitter
	mu             sync.Mutex
	now, most, all int
}

func (b *busiest) Submit(ctx context.Context, c *order.Command, wait time.Duration) (order.Answer, error) {
	b.mu.Lock()
	b.all++
	b.now++
	b.most = max(b.most, b.now)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.now--
		b.mu.Unlock()
	}()
	return b.Submitter.Submit(ctx, c, wait)
}

// seen is how many there have been.
func (b *busiest) seen() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all
}

// h2conn is the client's end of an HTTP/2 connection.
type h2conn struct {
	*http2.Framer
	conn    *tls.Conn
	encoded bytes.Buffer
	encoder *hpack.Encoder
	streams map[uint32]*returned
}

// returned is what came back on a stream.
type returned struct {
	status string // "" before there is any
	body   strings.Builder
	whole  bool           // its answer has ended
	reset  *http2.ErrCode // nil: it was not
}

// dialHTTP2 opens a connection that ends with the test. The shortest time-out of a
// listener is that of its handshakes as well; a machine that stands still takes
// longer, so it tries again.
func dialHTTP2(t testing.TB, k *kit, config *tls.Config) *h2conn {
	t.Helper()
	for giveUp := time.Now().Add(time.Minute); ; {
		c, err := openHTTP2(t.Context(), k, config)
		if err == nil {
			t.Cleanup(func() { _ = c.conn.Close() })
			require.Equal(t, "h2", c.conn.ConnectionState().NegotiatedProtocol)
			return c
		}
		require.True(t, time.Now().Before(giveUp), err)
	}
}

func openHTTP2(ctx context.Context, k *kit, config *tls.Config) (*h2conn, error) {
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", k.server.Addr().String())
	if err != nil {
		return nil, err
	}
	c := &h2conn{Framer: http2.NewFramer(conn, conn), conn: conn.(*tls.Conn), streams: map[uint32]*returned{}}
	c.ReadMetaHeaders = hpack.NewDecoder(4<<10, nil)
	c.encoder = hpack.NewEncoder(&c.encoded)
	err = conn.SetDeadline(time.Now().Add(time.Minute))
	if err == nil {
		_, err = io.WriteString(conn, http2.ClientPreface)
	}
	if err == nil {
		err = c.WriteSettings()
	}
	if err == nil {
		_, err = c.ReadFrame() // the handshake is over at the other end too
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// encode encodes the header of a request.
func (c *h2conn) encode(method, path string, others ...[2]string) []byte {
	c.encoded.Reset()
	for _, f := range append([][2]string{{":method", method}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}}, others...) {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	return c.encoded.Bytes()
}

// head encodes the header of an order.
func (c *h2conn) head(key string) []byte {
	return c.encode(http.MethodPost, "/api/orders", [2]string{"authorization", "Bearer " + mint("alice", "orders")},
		[2]string{"content-type", "application/json"}, [2]string{"idempotency-key", key})
}

// ask begins a request on a stream that nobody had before; without a body it is
// the whole request.
func (c *h2conn) ask(t testing.TB, id uint32, head []byte, body bool) {
	t.Helper()
	require.NoError(t, c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head, EndHeaders: true, EndStream: !body}))
}

// until reads frames until a stream is as it is wanted.
func (c *h2conn) until(t testing.TB, id uint32, wanted func(*returned) bool) *returned {
	t.Helper()
	for {
		if s := c.streams[id]; s != nil && wanted(s) {
			return s
		}
		frame, err := c.ReadFrame()
		require.NoError(t, err)
		s := c.streams[frame.Header().StreamID]
		if s == nil {
			s = &returned{}
			c.streams[frame.Header().StreamID] = s
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			s.status, s.whole = f.PseudoValue("status"), f.StreamEnded()
		case *http2.DataFrame:
			s.body.Write(f.Data())
			s.whole = f.StreamEnded()
		case *http2.RSTStreamFrame:
			s.reset = new(f.ErrCode)
		case *http2.GoAwayFrame:
			require.Fail(t, "unexpected", "%v", f)
		}
	}
}

func answered(s *returned) bool { return s.whole }
func wasReset(s *returned) bool { return s.reset != nil }

func TestOrdersAreTakenOverHTTP2(t *testing.T) {
	t.Parallel()
	k, config := newTLSKit(t)
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	for _, replayed := range []string{"", "true"} {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, k.url+"/api/orders", strings.NewReader(plain))
		require.NoError(t, err)
		for _, h := range []header{as("alice"), key("k1"), with("Content-Type", "application/json")} {
			h(req.Header)
		}
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 2, resp.ProtoMajor)
		require.Equal(t, http.StatusCreated, resp.StatusCode)
		require.Equal(t, replayed, resp.Header.Get("Idempotent-Replayed"))
	}
}

// Requests that are reset as soon as they are sent (CVE-2023-44487) must not
// run beside each other without a bound, nor wait without one.
func TestRapidResetsAreBounded(t *testing.T) {
	t.Parallel()
	const streams = 128
	count := &busiest{}
	k, config := newTLSKit(t, func(o *gateway.Options) { count.Submitter, o.Submitter = o.Submitter, count })
	k.budget.Store(int64(time.Minute))
	k.ledger.Block()
	c := dialHTTP2(t, k, config)
	var flood sync.WaitGroup
	flood.Go(func() {
		head := bytes.Clone(c.head("k1"))
		for i := range 5000 {
			id := uint32(2*i + 1)
			err := errors.Join(
				c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head, EndHeaders: true}),
				c.WriteData(id, true, []byte(plain)),
				c.WriteRSTStream(id, http2.ErrCodeCancel),
			)
			if err != nil {
				return // the gateway has had enough
			}
		}
	})
	honest := make(chan reply, 1)
	go func() { honest <- postTLS(t, k, config, "k2") }()
	flood.Wait()
	// What is on its way to the gateway is lost when this end closes.
	require.Eventually(t, func() bool { return count.seen() >= streams }, time.Minute, time.Millisecond, "the flood does not reach the handlers")
	require.NoError(t, c.conn.Close())
	k.ledger.Release()
	require.Equal(t, http.StatusCreated, (<-honest).status, "another connection is served meanwhile")
	require.Eventually(t, func() bool { return inFlight(k) == "in flight 0" }, time.Minute, time.Millisecond)
	count.mu.Lock()
	defer count.mu.Unlock()
	require.LessOrEqual(t, count.most, streams+1, "the streams of one connection, and the honest client")
}

func postTLS(t testing.TB, k *kit, config *tls.Config, idempotencyKey string) reply {
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, k.url+"/api/orders", strings.NewReader(plain))
	if err != nil {
		t.Error(err)
		return reply{}
	}
	for _, h := range []header{as("alice"), key(idempotencyKey), with("Content-Type", "application/json")} {
		h(req.Header)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Error(err)
		return reply{}
	}
	_ = resp.Body.Close()
	return reply{status: resp.StatusCode}
}

// A header in endless pieces (CVE-2023-45288), and answers that nobody takes.
func TestHTTP2FloodsEndTheConnection(t *testing.T) {
	t.Parallel()
	for name, flood := range map[string]func(c *h2conn) error{
		"endless header": func(c *h2conn) error {
			err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.head("k1")})
			filler := bytes.Repeat([]byte{0, 1, 'x', 1, 'y'}, 3000) // literal fields
			for i := 0; err == nil && i < 10_000; i++ {
				err = c.WriteContinuation(1, false, filler)
			}
			return err
		},
		"pings without reading": func(c *h2conn) error {
			// Many at once: a machine can be very slow with millions of tiny packets.
			var pings bytes.Buffer
			err := http2.NewFramer(&pings, nil).WritePing(false, [8]byte{1})
			many := bytes.Repeat(pings.Bytes(), 1000)
			for i := 0; err == nil && i < 10_000; i++ {
				_, err = c.conn.Write(many)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, config := newTLSKit(t)
			c := dialHTTP2(t, k, config)
			err := flood(c)
			require.Error(t, err, "the gateway took all of it")
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			require.Equal(t, http.StatusCreated, postTLS(t, k, config, "k1").status)
		})
	}
}

func TestStreamsBeyondTheBoundAreRefused(t *testing.T) {
	t.Parallel()
	const most = 128
	k, config := newTLSKit(t, func(o *gateway.Options) {
		o.Timeouts = gateway.Timeouts{ReadHeader: time.Hour, Read: time.Hour, Write: time.Hour}
	})
	require.NoError(t, k.ledger.SetBalance(context.Background(), "alice", 100_000_00))
	c := dialHTTP2(t, k, config)
	require.NoError(t, c.WriteWindowUpdate(0, 1<<20))
	for i := range uint32(most) { // each waits for its body
		c.ask(t, 2*i+1, c.head(fmt.Sprint("k", i)), true)
	}
	refused := func(id uint32, want http2.ErrCode) {
		t.Helper()
		c.ask(t, id, c.head("one-more"), false)
		s := c.until(t, id, wasReset)
		require.Equal(t, want, *s.reset)
		require.Empty(t, s.status)
	}
	refused(2*most+1, http2.ErrCodeRefusedStream) // perhaps it does not know of the bound yet
	require.NoError(t, c.WriteSettingsAck())
	refused(2*most+3, http2.ErrCodeProtocol)
	require.Zero(t, k.ledger.Calls().Decide)
	for i := range uint32(most) {
		require.NoError(t, c.WriteData(2*i+1, true, []byte(plain)))
	}
	for i := range uint32(most) {
		s := c.until(t, 2*i+1, answered)
		require.Equal(t, "201", s.status, s.body.String())
	}
	require.Equal(t, most, k.ledger.CommitCount())
	c.ask(t, 2*most+5, c.head("one-more"), true)
	require.NoError(t, c.WriteData(2*most+5, true, []byte(plain)))
	require.Equal(t, "201", c.until(t, 2*most+5, answered).status, "there is room again")
}

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

func TestPlainBytesOnATLSListenerAreNoRequest(t *testing.T) {
	t.Parallel()
	k, _ := newTLSKit(t)
	conn, err := net.Dial("tcp", k.server.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(conn, request("alice", declared(plain), plain))
	require.NoError(t, err)
	hungUp(t, conn)
	require.Zero(t, k.ledger.Calls().Decide)
}
