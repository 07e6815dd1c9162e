package gateway_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
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
	// When the gateway has acknowledged the settings, the time for them is over too.
	for acknowledged := false; err == nil && !acknowledged; {
		var frame http2.Frame
		frame, err = c.ReadFrame()
		if settings, ok := frame.(*http2.SettingsFrame); ok {
			acknowledged = settings.IsAck()
		}
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
