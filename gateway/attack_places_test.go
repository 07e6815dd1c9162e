package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/oncegate/oncegate/gateway"
)

// sending opens a connection with a request whose body is awaited.
func (k *kit) sending(head string) *bufio.ReadWriter {
	k.t.Helper()
	conn := k.dial()
	rw := bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
	_, err := io.WriteString(conn, head)
	require.NoError(k.t, err)
	line, err := rw.ReadString('\n')
	require.NoError(k.t, err)
	require.Equal(k.t, "HTTP/1.1 100 Continue\r\n", line, "the gateway reads the body")
	return rw
}

// callback is the head of a callback with a time of now, which anybody can send.
func callback() string {
	return "POST /webhooks/payments HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9000\r\nExpect: 100-continue\r\n" +
		"Webhook-Id: m\r\nWebhook-Signature: v1,AAAA\r\nWebhook-Timestamp: " + strconv.FormatInt(time.Now().Unix(), 10) + "\r\n\r\n"
}

// Whoever announces a body and does not send it, with a token or without one,
// takes no place from those who do.
func TestBodiesThatDoNotComeKeepNobodyOut(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"callbacks of anybody": callback(),
		"orders":               request("bob", "Content-Length: 60000\r\nExpect: 100-continue", ""),
		"batches": strings.Replace(request("bob", "Content-Length: 500000\r\nExpect: 100-continue", ""),
			"/api/orders", "/api/order-batches", 1),
		"chunks": request("bob", "Transfer-Encoding: chunked\r\nExpect: 100-continue", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newLiveKit(t)
			k.tune(func(t *gateway.Tuning) { t.MaxInFlight = 2 })
			for range 8 {
				k.sending(head)
			}
			require.Equal(t, "in flight 0", inFlight(k))
			require.Equal(t, http.StatusCreated, k.post(plain, key("k1")).status)
			require.Equal(t, http.StatusOK, k.get("/api/orders").status)
		})
	}
}

// A body that was awaited is refused like any request when there is no place by
// the time it is there, and so is the rest of one that is large.
func TestBodiesThatComeLateNeedAPlace(t *testing.T) {
	t.Parallel()
	k := newLiveKit(t)
	k.tune(func(t *gateway.Tuning) { t.MaxInFlight = 1 })
	const late = "Expect: 100-continue\r\nConnection: close\r\n"
	small := k.sending(request("bob", late+declared(plain), ""))
	large := k.sending(strings.Replace(request("bob", late+"Content-Length: 500000", ""), "/api/orders", "/api/order-batches", 1))
	arrived := k.ledger.Block()
	first := make(chan reply, 1)
	go func() { first <- k.post(plain, key("k1")) }()
	<-arrived
	for conn, body := range map[*bufio.ReadWriter]string{small: plain, large: strings.Repeat(" ", 100_000)} {
		_, _ = conn.WriteString(body) // the gateway answers without the whole of a large one, and may have hung up
		_ = conn.Flush()
		_, err := conn.ReadString('\n') // the end of 100 Continue
		require.NoError(t, err)
		resp, err := http.ReadResponse(conn.Reader, nil)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, string(text))
		require.Contains(t, string(text), `"code":"OVERLOADED","outcome":"not_committed"`)
	}
	k.ledger.Release()
	require.Equal(t, http.StatusCreated, (<-first).status)
	require.Eventually(t, func() bool { return inFlight(k) == "in flight 0" }, time.Minute, time.Millisecond, "a place is given back once")
}

// A client that asks and takes no answer, which HTTP/2 lets it do with a window of
// nothing, keeps nobody out either.
func TestAnswersThatAreNotTakenKeepNobodyOut(t *testing.T) {
	t.Parallel()
	k, config := newTLSKit(t)
	require.NoError(t, k.ledger.SetBalance(context.Background(), "alice", 100_000_00))
	for i := range 60 { // more than one write of the server
		require.Equal(t, http.StatusCreated, postTLS(t, k, config, fmt.Sprint("k", i)).status)
	}
	k.tune(func(t *gateway.Tuning) { t.MaxInFlight = 2 })
	c := dialHTTP2(t, k, config)
	require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	const streams = 8
	for i := range uint32(streams) {
		c.ask(t, 2*i+1, c.list(), false)
		c.until(t, 2*i+1, func(s *returned) bool { return s.status != "" }) // its answer has begun
	}
	require.Equal(t, http.StatusCreated, postTLS(t, k, config, "afterwards").status)
}

// list encodes the header of a request for a page of orders.
func (c *h2conn) list() []byte {
	return c.encode(http.MethodGet, "/api/orders?limit=60", [2]string{"authorization", "Bearer " + mint("alice", "orders")})
}
