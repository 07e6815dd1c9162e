package gateway

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/oncegate/oncegate/order"
)

const (
	firstBuffer = 4 << 10
	// keptBuffer bounds what waits in the pool for the next request.
	keptBuffer = 64 << 10
	// placelessBody bounds what a request may send or be sent, in bytes, without a
	// place among the requests in flight.
	placelessBody = 64 << 10
)

// bodies reads request bodies whole, through buffers that are used again. The
// zero value is ready.
type bodies struct{ pool sync.Pool }

// read returns the body. Nothing may be claimed for a request before it did: a
// body that ends early can happen to be complete JSON. A body above placelessBody
// is read on only if room, which is asked once, says so.
func (b *bodies) read(r *http.Request, limit int, room func() bool) (string, *problem, error) {
	if r.ContentLength > int64(limit) {
		return "", newProblem(CodeBodyTooLarge), nil
	}
	p, _ := b.pool.Get().(*[]byte)
	if p == nil {
		buf := make([]byte, 0, firstBuffer)
		p = &buf
	}
	buf, err := readUpTo(r.Body, (*p)[:0], min(limit, placelessBody))
	if errors.Is(err, errTooLarge) && limit > placelessBody {
		if err = errNoRoom; room() {
			buf, err = readUpTo(r.Body, buf, limit)
		}
	}
	body := ""
	if err == nil {
		body = string(buf)
	}
	if cap(buf) <= keptBuffer {
		*p = buf
		b.pool.Put(p)
	}
	switch {
	case errors.Is(err, errTooLarge):
		return "", newProblem(CodeBodyTooLarge), nil
	case errors.Is(err, errNoRoom):
		return "", newProblem(CodeOverloaded), nil
	case err != nil:
		return "", cutShort(err), fmt.Errorf("read the body: %w", err)
	}
	return body, nil, nil
}

// cutShort is a body that ended early. One that was too slow, or whose connection
// broke, is not the sender's to correct: the same again may arrive.
func cutShort(err error) *problem {
	p := newProblem(CodeInvalidRequest)
	p.faults = []order.FieldFault{{Reason: "did not arrive whole"}}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) {
		p.retryable = new(true)
		p.detail = "The body did not arrive whole. Send the same request again; nothing was claimed."
	}
	return p
}

var (
	errTooLarge = errors.New("the body is larger than its limit")
	errNoRoom   = errors.New("there is no room for a body of this size")
)

// readUpTo appends what it reads to buf, to the end or beyond the limit. What it
// returns holds all that was read.
func readUpTo(r io.Reader, buf []byte, limit int) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return buf, errTooLarge
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}

// jsonBody reports whether a request's body is declared as JSON in UTF-8 and
// not compressed. A compressed body would be an unbounded one.
func jsonBody(h http.Header) bool {
	for _, encoding := range h["Content-Encoding"] {
		if !strings.EqualFold(strings.TrimSpace(encoding), "identity") {
			return false
		}
	}
	types := h["Content-Type"]
	if len(types) != 1 {
		return false
	}
	if types[0] == jsonType {
		return true
	}
	media, params, err := mime.ParseMediaType(types[0])
	charset, given := params["charset"]
	return err == nil && media == jsonType && (!given || strings.EqualFold(charset, "utf-8"))
}

// idempotencyKey reads the key of a request. Two header lines are refused, for
// nobody can say which of them was meant.
func idempotencyKey(h http.Header, required bool) (order.Key, *problem) {
	values := h["Idempotency-Key"]
	switch {
	case len(values) == 0 && required:
		return "", newProblem(CodeKeyRequired)
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", newProblem(CodeKeyInvalid)
	}
	key, err := order.ParseKey(values[0])
	if err != nil {
		return "", newProblem(CodeKeyInvalid)
	}
	return key, nil
}
