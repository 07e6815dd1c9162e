package wire

import (
	"net/http"
	"strconv"
	"time"
)

// Field is one header line.
type Field struct{ Name, Value string }

// Request is what is sent. It can be sent again; every time is counted.
type Request struct {
	Method string
	Path   string // with the query
	Fields []Field
	Body   []byte
}

func (r *Request) render(prefix, host string) []byte {
	b := make([]byte, 0, 512+len(r.Body))
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, prefix...)
	b = append(b, r.Path...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, host...)
	b = append(b, "\r\nUser-Agent: oncegate-loadtest\r\n"...)
	for _, f := range r.Fields {
		b = append(b, f.Name...)
		b = append(b, ": "...)
		b = append(b, f.Value...)
		b = append(b, "\r\n"...)
	}
	if r.Body != nil {
		b = append(b, "Content-Type: application/json\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(r.Body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	return append(b, r.Body...)
}

// Exchange is one request and what became of it.
type Exchange struct {
	Begun time.Time // when the client took it up
	Sent  time.Time // when it was written; zero when it never was
	Done  time.Time
	Wrote bool // at least a part of it left this process

	Status int // zero when there was no answer
	Header http.Header
	Body   []byte

	Fault Fault
	Err   error

	close bool
}
