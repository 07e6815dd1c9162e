package client_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// net/http resends a request that has an Idempotency-Key when a kept connection
// ends under it. One attempt is then two requests; the key makes that safe, and
// the receipt says so.
func TestWhatNetHTTPSendsAgainIsCounted(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	keys := make(chan string, 8)
	go func() {
		for first := true; ; first = false {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go serveAndBreak(conn, first, keys)
		}
	}()
	shop := quick(t, "http://"+ln.Addr().String())
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

// serveAndBreak answers one request; the first connection takes a second one
// and closes without an answer.
func serveAndBreak(conn net.Conn, first bool, keys chan<- string) {
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
		_, _ = io.WriteString(conn, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: "+
			strconv.Itoa(len(created))+"\r\n\r\n"+created)
	}
}
