package client_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/client"
)

// net/http resends a request that has an Idempotency-Key when a kept connection
// ends under it. One attempt is then two requests; the key makes that safe, and
// the receipt says so.
func TestWhatNetHTTPSendsAgainIsCounted(t *testing.T) {
	t.Parallel()
	url, keys := breakOnce(t, "201 Created", "application/json", created)
	shop := quick(t, url)
	receipt, err := shop.CreateOrder(t.Context(), "one", dumplings)
	require.NoError(t, err)
	require.Equal(t, 1, receipt.Sends)
	<-keys

	receipt, err = shop.CreateOrder(t.Context(), "two", dumplings)
	require.NoError(t, err)
	require.Equal(t, 1, receipt.Attempts)
	require.Equal(t, 2, receipt.Sends)
	sent, resent := <-keys, <-keys
	require.Equal(t, sent, resent)
}

// The first of two sends may have made the order, so that a refusal of the second
// settles nothing.
func TestARefusalOfWhatNetHTTPSendsAgainSettlesNothing(t *testing.T) {
	t.Parallel()
	url, keys := breakOnce(t, "401 Unauthorized", "application/problem+json",
		`{"status":401,"code":"UNAUTHENTICATED","outcome":"rejected","retryable":false,"safe_new_key":false}`)
	shop := quick(t, url)
	_, err := shop.CreateOrder(t.Context(), "one", dumplings)
	require.ErrorContains(t, err, "UNAUTHENTICATED")
	require.NotErrorIs(t, err, client.ErrUnsettled, "it was sent once")
	<-keys

	_, err = shop.CreateOrder(t.Context(), "two", dumplings)
	var unsettled *client.UnsettledError
	require.ErrorAs(t, err, &unsettled)
	require.Equal(t, 1, unsettled.Attempts)
	sent, resent := <-keys, <-keys
	require.Equal(t, sent, resent)
}

// breakOnce is a server that gives one answer to everything, except that the
// first connection takes a second request and closes without an answer. It sends
// the keys that came.
func breakOnce(t *testing.T, status, contentType, body string) (url string, keys <-chan string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	came := make(chan string, 8)
	answer := "HTTP/1.1 " + status + "\r\nContent-Type: " + contentType +
		"\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	go func() {
		for first := true; ; first = false {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go serveAndBreak(conn, first, answer, came)
		}
	}()
	return "http://" + ln.Addr().String(), came
}

// serveAndBreak serves one connection.
func serveAndBreak(conn net.Conn, first bool, answer string, keys chan<- string) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for n := 1; ; n++ {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		keys <- req.Header.Get("Idempotency-Key")
		if first && n == 2 {
			return
		}
		_, _ = io.WriteString(conn, answer)
	}
}
