//go:build unix

package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/oncegate/oncegate/loadtest/measure"
)

// maxAnswer is far above the answer to an order.
const maxAnswer = 64 << 10

// answer is an HTTP answer as far as the bench reads it. Its memory is used
// again for the next one.
type answer struct {
	status int
	again  bool // Idempotent-Replayed: true
	last   bool // the server closes the connection
	after  int  // Retry-After in seconds; 0 without one
	body   []byte

	buf []byte
}

var (
	errEmpty    = errors.New("an empty answer")
	errNoLength = errors.New("an answer without a Content-Length")
)

// read reads exactly one answer.
func (a *answer) read(from io.Reader) error {
	*a = answer{buf: a.buf[:0]}
	end := -1 // of the header
	length := 0
	for {
		if end < 0 {
			if i := bytes.Index(a.buf, []byte("\r\n\r\n")); i >= 0 {
				end = i + len("\r\n\r\n")
				var err error
				if length, err = a.header(a.buf[:i]); err != nil {
					return err
				}
			}
		}
		switch have := len(a.buf) - end; {
		case end < 0 || have < length:
		case have > length:
			return errors.New("more than was asked for")
		default:
			a.body = a.buf[end:]
			return nil
		}
		if len(a.buf) >= maxAnswer {
			return fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
		}
		if len(a.buf) == cap(a.buf) {
			a.buf = append(a.buf, make([]byte, max(2048, len(a.buf)))...)[:len(a.buf)]
		}
		n, err := from.Read(a.buf[len(a.buf):cap(a.buf)])
		a.buf = a.buf[:len(a.buf)+n]
		if n == 0 && err != nil {
			return fmt.Errorf("receive: %w", err)
		}
	}
}

// header reads the status line and the fields that matter, and returns
// the length of the body.
func (a *answer) header(h []byte) (length int, err error) {
	line, rest, _ := bytes.Cut(h, []byte("\r\n"))
	code, found := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	if !found || len(code) < 3 {
		return 0, fmt.Errorf("not an answer: %.100q", line)
	}
	if a.status, err = strconv.Atoi(string(code[:3])); err != nil {
		return 0, fmt.Errorf("not an answer: %.100q", line)
	}
	length = -1
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		switch name, value, _ := bytes.Cut(line, []byte(": ")); string(name) {
		case "Content-Length":
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 || length > maxAnswer {
				return 0, fmt.Errorf("Content-Length: %.100q", value)
			}
		case "Idempotent-Replayed":
			a.again = string(value) == "true"
		case "Connection":
			a.last = string(value) == "close"
		case "Retry-After":
			a.after, _ = strconv.Atoi(string(value)) // a date is none of the gateway's
		}
	}
	if length < 0 {
		return 0, errNoLength
	}
	return length, nil
}

// outcome gives the answer its name in the words of the contract.
func (a *answer) outcome() measure.Outcome {
	switch {
	case a.status == http.StatusCreated && a.again:
		return measure.Replayed
	case a.status == http.StatusCreated:
		return measure.Created
	case a.status == http.StatusConflict && bytes.Contains(a.body, []byte(`"REQUEST_IN_PROGRESS"`)):
		return measure.InProgress
	case a.status == http.StatusConflict && bytes.Contains(a.body, []byte(`"IDEMPOTENCY_KEY_REUSED"`)):
		return measure.Reused
	case a.status == http.StatusTooManyRequests:
		return measure.Limited
	case a.status == http.StatusServiceUnavailable:
		return measure.Unavailable
	default:
		return measure.Unexpected
	}
}

// check says what is wrong with it.
func (a *answer) check(again bool) error {
	switch {
	case a.status != http.StatusCreated:
		return fmt.Errorf("status %d: %.300s", a.status, a.body)
	case len(a.body) == 0:
		return errEmpty
	case a.again != again:
		return fmt.Errorf("replayed is %t", !again)
	}
	return nil
}
