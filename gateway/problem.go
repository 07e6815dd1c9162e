package gateway

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/oncegate/oncegate/order"
)

// problem is one RFC 9457 document and the headers that belong to it.
type problem struct {
	code       Code
	status     int
	detail     string
	outcome    order.Outcome
	retryable  *bool         // where it is not what the code says
	retryAfter time.Duration // zero: never say when
	statusURL  string
	challenge  string // of WWW-Authenticate
	faults     []order.FieldFault
	keepKey    bool // a new key is not safe, whatever the code says
}

// newProblem begins a problem with what its code says.
func newProblem(code Code) *problem {
	k := code.kind()
	p := &problem{code: code, status: k.status, detail: k.detail, outcome: k.outcome}
	if k.status == http.StatusTooManyRequests || k.status == http.StatusServiceUnavailable {
		p.retryAfter = time.Second
	}
	return p
}

// mayDouble has a problem of unknown outcome not call for the request again: there
// is no key that would settle it.
func (p *problem) mayDouble() {
	p.retryable = new(false)
	p.detail = "The order may have been made. Without a key the same request could make another: look among your orders before you send it again."
}

func (p *problem) withDetail(detail string) *problem {
	p.detail = detail
	return p
}

// problemOf is the one translation of errors into problems. Causes stay
// inside: a caller reads the code's own words.
func problemOf(err error) *problem {
	var invalid *order.InvalidError
	switch {
	case errors.As(err, &invalid):
		p := newProblem(CodeInvalidRequest)
		p.faults = invalid.Faults
		return p
	case errors.Is(err, order.ErrKeyInvalid):
		return newProblem(CodeKeyInvalid)
	case errors.Is(err, order.ErrNotFound):
		return newProblem(CodeNotFound)
	case errors.Is(err, order.ErrUnknownUser):
		return newProblem(CodeUserUnknown)
	case errors.Is(err, order.ErrOverloaded):
		return undecided(CodeOverloaded, err)
	case errors.Is(err, order.ErrUnavailable), errors.Is(err, order.ErrShuttingDown),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return undecided(CodeUnavailable, err)
	default:
		p := undecided(CodeInternal, err)
		// Asking again does not mend the fault, but it settles what is unknown.
		p.retryable = new(p.outcome == order.OutcomeUnknown)
		return p
	}
}

func undecided(code Code, err error) *problem {
	p := newProblem(code)
	p.outcome = order.OutcomeOf(err)
	return p
}

// seconds is the whole number of seconds for Retry-After, at least one.
func (p *problem) seconds() int64 {
	return max(1, int64((p.retryAfter+time.Second-1)/time.Second))
}

// appendProblem appends the members that every problem has, and leaves the
// object open.
func (r *Renderer) appendProblem(b []byte, p *problem) []byte {
	k := p.code.kind()
	b = append(b, '{')
	b = appendText(b, "type", r.base+p.code.slug())
	b = appendText(b, "title", k.title)
	b = appendInt(b, "status", int64(p.status))
	b = appendText(b, "detail", p.detail)
	b = appendText(b, "code", string(p.code))
	b = appendText(b, "outcome", string(p.outcome))
	retryable := k.retryable
	if p.retryable != nil {
		retryable = *p.retryable
	}
	b = appendBool(b, "retryable", retryable)
	return appendBool(b, "safe_new_key", k.safeNewKey && !p.keepKey)
}

// problemBody renders the problem of a single request.
func (r *Renderer) problemBody(p *problem, requestID string) []byte {
	b := r.appendProblem(make([]byte, 0, 512), p)
	b = appendText(b, "request_id", requestID)
	if p.statusURL != "" {
		b = appendText(b, "status_url", p.statusURL)
	}
	if p.retryAfter > 0 {
		b = appendInt(b, "retry_after_ms", max(1, p.retryAfter.Milliseconds()))
	}
	if len(p.faults) > 0 {
		b = append(appendMember(b, "errors"), '[')
		for i, f := range p.faults[:min(len(p.faults), maxFaults)] {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(append(b, '{'), "path", f.Path)
			b = append(appendText(b, "reason", f.Reason), '}')
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// writeProblem writes a problem with the headers that belong to it.
func (r *Renderer) writeProblem(w http.ResponseWriter, p *problem, requestID string) {
	h := w.Header()
	h.Set("Cache-Control", noStore)
	h.Set("Content-Type", problemType)
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.seconds(), 10))
	}
	if p.statusURL != "" {
		h.Set("Link", "<"+p.statusURL+`>; rel="status"`)
	}
	if p.challenge != "" {
		h.Set("WWW-Authenticate", p.challenge)
	}
	body := r.problemBody(p, requestID)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.status)
	_, _ = w.Write(body) //nolint:gosec // G705: JSON, declared as a problem; if it fails the client is gone
}
