//go:build unix

package bench

import (
	"bytes"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// FuzzReadAnswer: an answer that the bench reads is the same in whatever pieces it
// comes, and takes no more memory than an answer may have. (It reads those of its
// own servers, and is no judge of others.)
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
		require.Equal(t, a.status, slow.status)
		require.Equal(t, string(a.body), string(slow.body))
	})
}
