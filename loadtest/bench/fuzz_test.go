//go:build unix

package bench

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// FuzzReadAnswer: an answer that the bench reads is the one that net/http reads,
// in whatever pieces it comes, and takes no more memory than an answer may have.
func FuzzReadAnswer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nIdempotent-Replayed: true\r\n\r\n{}", "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 201 Created\r\n\r\n", "HTTP/1.1 201 Created\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 201\r\nContent-Length: 99999999\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nmore",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		var a, slow answer
		err := a.read(bytes.NewReader(sent))
		require.LessOrEqual(t, cap(a.buf), 4*maxAnswer)
		if err != nil {
			return
		}
		require.NoError(t, slow.read(iotest.OneByteReader(bytes.NewReader(sent))))
		require.Equal(t, string(a.body), string(slow.body))
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(sent)), nil)
		if err != nil || resp.StatusCode < 200 || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified || resp.TransferEncoding != nil {
			return // stricter, or an answer that no gateway gives to an order
		}
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, resp.StatusCode, a.status)
		require.Equal(t, string(body), string(a.body))
	})
}
