package faultproxy

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFirstWordOfAStatement(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"COMMIT":                           "COMMIT",
		"commit ;":                         "COMMIT",
		" \n(SELECT 1)":                    "SELECT",
		"/* trace=1 */ /* b */insert into": "INSERT",
		"/* never closed":                  "",
		"START TRANSACTION":                "START",
		"":                                 "",
	} {
		require.Equal(t, want, firstWord(query), query)
	}
}

func TestStatementWithAttributesIsRead(t *testing.T) {
	t.Parallel()
	c := readCommand([]byte("\x03\x00\x01COMMIT"), true)
	require.Equal(t, mysqlCommand{name: "COMMIT", query: "COMMIT", isQuery: true}, c)
}

func FuzzReadPacket(f *testing.F) {
	f.Add([]byte("\x07\x00\x00\x00\x03COMMIT"))
	f.Add([]byte("\x01\x00\x00\x00\x0e"))
	f.Add([]byte("\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, input []byte) {
		p, err := readPacket(bufio.NewReader(bytes.NewReader(input)))
		if err != nil {
			return
		}
		require.True(t, bytes.HasPrefix(input, p.raw), "bytes were changed")
		readCommand(p.payload, true)
	})
}

func FuzzReadReply(f *testing.F) {
	for _, seed := range []string{
		"+OK\r\n", "$-1\r\n", "$3\r\nabc\r\n", "*2\r\n:1\r\n$1\r\nx\r\n", "%1\r\n+a\r\n_\r\n",
		">2\r\n+push\r\n+x\r\n", "|1\r\n+ttl\r\n:1\r\n#t\r\n", "*-1\r\n", ",1.5\r\n", "=7\r\ntxt:abc\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		data, err := readReply(bufio.NewReader(bytes.NewReader(input)))
		if err == nil {
			require.True(t, bytes.HasPrefix(input, data), "bytes were changed")
		}
	})
}

func FuzzReadRequest(f *testing.F) {
	for _, seed := range []string{"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "PING\r\n", "\r\n", "*0\r\n", "*1\r\n$-1\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		data, _, err := readRequest(bufio.NewReader(bytes.NewReader(input)))
		if err == nil {
			require.True(t, bytes.HasPrefix(input, data), "bytes were changed")
		}
	})
}
