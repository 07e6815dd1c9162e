package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// raw is one answer on a raw connection.
type raw struct {
	status int
	closes bool
	header http.Header
	body   string
}

// goodbye ends a connection that the gateway leaves open.
const goodbye = "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

// exchange sends bytes as they are and reads every answer until the gateway
// hangs up.
func (k *kit) exchange(sent string) []raw {
	k.t.Helper()
	conn := k.dial()
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(conn, sent) // the gateway may have hung up on the way
	}()
	defer func() { _ = conn.Close(); <-written }()
	var answers []raw
	for r := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			require.NotErrorIs(k.t, err, os.ErrDeadlineExceeded, "the gateway did not hang up")
			return answers
		}
		body, err := io.ReadAll(resp.Body)
		require.True(k.t, err == nil || errors.Is(err, io.ErrUnexpectedEOF), err)
		require.NoError(k.t, resp.Body.Close())
		answers = append(answers, raw{resp.StatusCode, resp.Close, resp.Header, string(body)})
	}
}

// request is one whole request of a user.
func request(user, framing, body string) string {
	return "POST /api/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + mint(user, "orders") +
		"\r\nIdempotency-Key: k1\r\nContent-Type: application/json\r\n" + framing + "\r\n\r\n" + body
}

func declared(body string) string { return "Content-Length: " + strconv.Itoa(len(body)) }

func inChunks(body string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body) }

func TestNoRequestIsSmuggledBehindAnother(t *testing.T) {
	t.Parallel()
	hidden := request("bob", declared(plain), plain)
	chunks := inChunks(plain)
	for framing, want := range map[string]int{
		"Transfer-Encoding: chunked":                                    http.StatusCreated,
		"Transfer-Encoding: Chunked":                                    http.StatusCreated,
		"Transfer-Encoding: chunked\r\nContent-Length: 4":               http.StatusCreated,
		"Content-Length: 4\r\nTransfer-Encoding: chunked":               http.StatusCreated,
		declared(chunks+hidden) + "\r\nTransfer-Encoding: chunked":      http.StatusCreated,
		"X: a\nTransfer-Encoding: chunked":                              http.StatusCreated, // a bare LF ends a line
		"Content-Length: 4, 5\r\nTransfer-Encoding: chunked":            http.StatusBadRequest,
		"Content-Length: 4\r\nContent-Length: 5":                        http.StatusBadRequest,
		"Content-Length: 4, 5":                                          http.StatusBadRequest,
		"Content-Length: +4":                                            http.StatusBadRequest,
		"Content-Length: 0x4":                                           http.StatusBadRequest,
		"Content-Length: -4":                                            http.StatusBadRequest,
		"Content-Length: 4 4":                                           http.StatusBadRequest,
		"Content-Length: 99999999999999999999":                          http.StatusBadRequest,
		"Transfer-Encoding : chunked":                                   http.StatusBadRequest,
		"Transfer-Encoding: \x0bchunked":                                http.StatusBadRequest,
		"Transfer-Encoding: \x00chunked":                                http.StatusBadRequest,
		"X: a\rTransfer-Encoding: chunked":                              http.StatusBadRequest,
		"Transfer-Encoding: identity":                                   http.StatusNotImplemented,
		"Transfer-Encoding: gzip, chunked":                              http.StatusNotImplemented,
		"Transfer-Encoding: chunked, identity":                          http.StatusNotImplemented,
		"Transfer-Encoding: xchunked":                                   http.StatusNotImplemented,
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked":      http.StatusNotImplemented,
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity":     http.StatusNotImplemented,
		"Transfer-Encoding: chunked\r\nContent-Length: 4\r\nHost: y":    http.StatusBadRequest,
		"Transfer-Encoding: chunked\r\nTrailer: Authorization, X-Trail": http.StatusCreated,
	} {
		t.Run(framing, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			answers := k.exchange(request("alice", framing, chunks+hidden))
			require.Len(t, answers, 1)
			require.Equal(t, want, answers[0].status, answers[0].body)
			require.True(t, answers[0].closes)
			n, err := k.ledger.CountOrders(context.Background(), "bob")
			require.NoError(t, err)
			require.Zero(t, n)
		})
	}
}

// HTTP/1.0 has no chunks. A proxy that knows them there nevertheless sends as the
// body of one request what reads as another one here.
func TestNothingFollowsARequestOfHTTP10(t *testing.T) {
	t.Parallel()
	hidden := request("bob", declared(plain), plain)
	for name, sent := range map[string]string{
		"no length":     request("alice", "Transfer-Encoding: chunked", hidden),
		"no body":       request("alice", "Content-Length: 0\r\nTransfer-Encoding: chunked", hidden),
		"a length":      request("alice", declared(plain)+"\r\nTransfer-Encoding: chunked", plain+hidden),
		"without those": request("alice", declared(plain), plain+hidden),
		"a read":        "GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + hidden,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			answers := k.exchange(strings.Replace(sent, " HTTP/1.1\r\n", " HTTP/1.0\r\nConnection: keep-alive\r\n", 1))
			require.Len(t, answers, 1)
			require.True(t, answers[0].closes)
			n, err := k.ledger.CountOrders(context.Background(), "bob")
			require.NoError(t, err)
			require.Zero(t, n)
		})
	}
}

func TestPipelinedRequestsAreAnsweredInTheirOrder(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	answers := k.exchange(request("alice", declared(plain), plain) + request("alice", declared(plain), plain) + goodbye)
	require.Len(t, answers, 3)
	require.Equal(t, http.StatusCreated, answers[0].status)
	require.Empty(t, answers[0].header.Get("Idempotent-Replayed"))
	require.Equal(t, "true", answers[1].header.Get("Idempotent-Replayed"))
	require.Equal(t, answers[0].body, answers[1].body)
	require.Equal(t, http.StatusOK, answers[2].status)
}

func TestBrokenChunksClaimNothing(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"size is no number":        "zz\r\n" + plain + "\r\n0\r\n\r\n",
		"size is negative":         "-1\r\n" + plain + "\r\n0\r\n\r\n",
		"size overflows":           "ffffffffffffffffff\r\n" + plain + "\r\n0\r\n\r\n",
		"bare LF after the size":   fmt.Sprintf("%x\n%s\r\n0\r\n\r\n", len(plain), plain),
		"chunk without its end":    fmt.Sprintf("%x\r\n%s0\r\n\r\n", len(plain), plain),
		"endless chunk extension":  fmt.Sprintf("%x;%s\r\n%s\r\n0\r\n\r\n", len(plain), strings.Repeat("x", 64<<10), plain),
		"endless trailers":         fmt.Sprintf("%x\r\n%s\r\n0\r\n%s\r\n", len(plain), plain, strings.Repeat("X: y\r\n", 64<<10)),
		"a trailer that is no one": fmt.Sprintf("%x\r\n%s\r\n0\r\nnonsense\r\n\r\n", len(plain), plain),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			answers := k.exchange(request("alice", "Transfer-Encoding: chunked", body))
			require.Len(t, answers, 1)
			require.Equal(t, http.StatusBadRequest, answers[0].status, answers[0].body)
			require.True(t, answers[0].closes)
			require.Zero(t, k.ledger.Calls().Decide)
		})
	}
}

// An Expect header must not make the gateway wait for a body that it will refuse.
func TestARefusedBodyIsNotAskedFor(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	answers := k.exchange(request("alice", "Content-Length: 1000000\r\nExpect: 100-continue", ""))
	require.Len(t, answers, 1)
	require.Equal(t, http.StatusRequestEntityTooLarge, answers[0].status)
	answers = k.exchange(request("alice", "Content-Length: 10\r\nExpect: a-miracle", "0123456789"))
	require.Len(t, answers, 1)
	require.Equal(t, http.StatusExpectationFailed, answers[0].status)
}
