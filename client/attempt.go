package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
)

// maxAnswer bounds what is read of an answer, in bytes; that to the largest
// batch is well below.
const maxAnswer = 4 << 20

// errNotSent says that an attempt ended before anything was sent.
var errNotSent = errors.New("client: nothing was sent")

// answer is one answer, read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
	sends  int // how often the request was given to a connection
}

// attempt sends one request and reads the answer whole, within the time of one
// attempt.
func (c *Client) attempt(ctx context.Context, method, path string, header http.Header, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.AttemptTimeout)
	defer cancel()
	token, err := c.o.Token(ctx)
	if err != nil {
		return answer{}, fmt.Errorf("%w: token: %w", errNotSent, err)
	}
	if !sendable(token) {
		return answer{}, fmt.Errorf("%w: token: it is empty, or has a line end or another character that no header has", errNotSent)
	}
	// net/http sends a request with an Idempotency-Key again on its own when the
	// connection breaks, and gets another connection for that.
	var sends atomic.Int64
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sends.Add(1) }})
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errNotSent, err)
	}
	if header != nil {
		r.Header = header
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.http.Do(r)
	if err != nil {
		return answer{sends: int(sends.Load())}, fmt.Errorf("client: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	a, err := read(resp)
	a.sends = int(sends.Load())
	return a, err
}

// sendable tells whether a text can stand in a header. net/http refuses what
// cannot, which would look like an attempt without an answer.
func sendable(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// read reads an answer to its end. Half an answer is none.
func read(resp *http.Response) (answer, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("it has more than %d bytes", maxAnswer)
	}
	if err != nil {
		err = fmt.Errorf("client: read the answer: %w", err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body}, err
}

// foreign says that an answer is not the gateway's.
func foreign(a answer) error {
	return fmt.Errorf("status %d with %q is not an answer of the gateway", a.status, a.header.Get("Content-Type"))
}
