package gateway_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
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

// busiest counts the orders that are decided at once.
type busiest struct {
	gateway.Submitter
	mu        sync.Mutex
	now, most int
}

func (b *busiest) Submit(ctx context.Context, c *order.Command, wait time.Duration) (order.Answer, error) {
	b.mu.Lock()
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

// h2conn is the client's end of an HTTP/2 connection.
type h2conn struct {
	*http2.Framer
	conn    *tls.Conn
	encoded bytes.Buffer
	encoder *hpack.Encoder
}

func dialHTTP2(t testing.TB, k *kit, config *tls.Config) *h2conn {
	t.Helper()
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	conn := dialTLS(t, k, config)
	require.Equal(t, "h2", conn.ConnectionState().NegotiatedProtocol)
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	c := &h2conn{Framer: http2.NewFramer(conn, conn), conn: conn}
	c.encoder = hpack.NewEncoder(&c.encoded)
	_, err := io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	require.NoError(t, c.WriteSettings())
	return c
}

// head encodes the header of an order.
func (c *h2conn) head(key string) []byte {
	c.encoded.Reset()
	for _, f := range [][2]string{
		{":method", "POST"},
		{":scheme", "https"},
		{":authority", "localhost"},
		{":path", "/api/orders"},
		{"authorization", "Bearer " + mint("alice", "orders")},
		{"content-type", "application/json"},
		{"idempotency-key", key},
	} {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	return c.encoded.Bytes()
}

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

// A header in endless pieces (CVE-2023-45288), and streams beyond the bound.
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
	k, config := newTLSKit(t)
	c := dialHTTP2(t, k, config)
	for {
		frame, err := c.ReadFrame()
		require.NoError(t, err)
		if settings, ok := frame.(*http2.SettingsFrame); ok && !settings.IsAck() {
			most, ok := settings.Value(http2.SettingMaxConcurrentStreams)
			require.True(t, ok)
			require.EqualValues(t, 128, most)
			return
		}
	}
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
