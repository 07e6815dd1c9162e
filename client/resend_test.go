package client_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/client"
)

// net/http does not keep every connection: on a busy machine the next request may get
// another one, and the break comes under a later one.
const mostIntents = 100

// net/http resends a request that has an Idempotency-Key when a kept connection
// ends under it. One attempt is then two requests; the key makes that safe, and
// the receipt says so.
func TestWhatNetHTTPSendsAgainIsCounted(t *testing.T) {
	t.Parallel()
	url, keys := breakOnce(t, "201 Created", "application/json", created)
	shop := quick(t, url)
	for n := range mostIntents {
		receipt, err := shop.CreateOrder(t.Context(), strconv.Itoa(n), dumplings)
		require.NoError(t, err)
		require.Equal(t, 1, receipt.Attempts)
		sent := <-keys
		if len(keys) == 0 {
			require.Equal(t, 1, receipt.Sends)
			continue
		}
		require.Equal(t, 2, receipt.Sends)
		require.Equal(t, sent, <-keys)
		return
	}
	require.Fail(t, "no connection was kept")
}

// The first of two sends may have made the order, so that a refusal of the second
// settles nothing.
func TestARefusalOfWhatNetHTTPSendsAgainSettlesNothing(t *testing.T) {
	t.Parallel()
	url, keys := breakOnce(t, "401 Unauthorized", "application/problem+json",
		`{"status":401,"code":"UNAUTHENTICATED","outcome":"rejected","retryable":false,"safe_new_key":false}`)
	shop := quick(t, url)
	for n := range mostIntents {
		_, err := shop.CreateOrder(t.Context(), strconv.Itoa(n), dumplings)
		require.ErrorContains(t, err, "UNAUTHENTICATED")
		sent := <-keys
		if len(keys) == 0 {
			require.NotErrorIs(t, err, client.ErrUnsettled, "it was sent once")
			continue
		}
		var unsettled *client.UnsettledError
		require.ErrorAs(t, err, &unsettled)
		require.Equal(t, 1, unsettled.Attempts)
		require.Equal(t, sent, <-keys)
		return
	}
	require.Fail(t, "no connection was kept")
}

// breakOnce is a server that gives one answer to everything, except that it takes
// the first request over a kept connection and closes without an answer. It sends
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
		var broke atomic.Bool
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go serveAndBreak(conn, &broke, answer, came)
		}
	}()
	return "http://" + ln.Addr().String(), came
}

// serveAndBreak serves one connection.
func serveAndBreak(conn net.Conn, broke *atomic.Bool, answer string, keys chan<- string) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for n := 1; ; n++ {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		keys <- req.Header.Get("Idempotency-Key")
		if n > 1 && !broke.Swap(true) {
			return
		}
		_, _ = io.WriteString(conn, answer)
	}
}
