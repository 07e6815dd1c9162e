package gateway_test

import (
	"bytes"
	"context"
	"errors"
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
	"golang.org/x/net/http2"

	"github.com/oncegate/oncegate/gateway"
)

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
			// Documents fill the buffers of both machines at once: it takes a slow machine
			// as long as the test waits to do it with the answers to pings.
			const window = 1 << 30
			err := errors.Join(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}), c.WriteWindowUpdate(0, window))
			for i := uint32(0); err == nil && i < 128; i++ {
				err = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: c.encode(http.MethodGet, "/openapi.yaml"), EndHeaders: true, EndStream: true})
			}
			// Many at once: a machine can be very slow with millions of tiny packets.
			var pings bytes.Buffer
			err = errors.Join(err, http2.NewFramer(&pings, nil).WritePing(false, [8]byte{1}))
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
