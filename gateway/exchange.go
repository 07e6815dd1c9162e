package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/oncegate/oncegate/order"
)

const noStore = "no-store"

// heldBack is how long a refusal is kept whose request found no room in the
// ledger's queue. Who is refused at once asks again at once, and a thousand quick
// refusals take the processor from the few who can be served: with 250 ms between
// them the same gateway makes many times as many orders under three times its load
// (docs/performance.md).
const heldBack = 250 * time.Millisecond

// statusClientGone is only ever logged and counted: nobody is there to read it.
const statusClientGone = 499

// endpoint is one route of the public listener.
type endpoint struct {
	name  string   // for logs and metrics
	scope string   // what a token must have; empty: no token is asked for
	quiet bool     // probes and the like: logged at debug level, never turned away
	query []string // the parameters that it has; without a scope others are passed over
	serve func(*exchange)
}

// exchange is one request and its answer.
type exchange struct {
	s      *Server
	w      gin.ResponseWriter
	r      *http.Request
	params gin.Params
	t      Tuning
	id     string
	who    Identity
	inside bool // has a place among the requests in flight

	started   time.Time // when the header was there
	unguarded bool      // asks for an order that sending it again would make again

	// What is known of the outcome, for the log.
	code   Code
	known  order.Outcome // what the problem said of the order
	cause  error
	answer order.Answer
	change order.Transition
	refund bool // the change owes one, and this process has not told of it
	key    order.Key
	digest order.Digest

	values [8]string // of the answer's header, so that each need not be a slice of its own
	used   int
}

// set sets a header field of the answer. The name is in its canonical form.
func (x *exchange) set(name, value string) {
	if x.used == len(x.values) {
		x.w.Header().Set(name, value)
		return
	}
	x.values[x.used] = value
	x.w.Header()[name] = x.values[x.used : x.used+1 : x.used+1]
	x.used++
}

// handle wraps an endpoint with what all have in common. It is one function
// and not a chain of middleware, so that the order of the steps can be read.
func (s *Server) handle(ep endpoint) gin.HandlerFunc {
	m := s.o.Metrics.route(ep.name)
	return s.traced(&ep, func(c *gin.Context) {
		x := &exchange{s: s, w: c.Writer, r: c.Request, params: c.Params, t: s.o.Tuning(), started: s.o.Now()}
		x.id = requestID(x.r, keyInPath(x.params))
		x.set("X-Request-Id", x.id)
		defer x.end(&ep, m)
		if (ep.quiet || x.placed()) && (ep.scope == "" || x.allowed(ep.scope) && x.asksOnly(ep.query)) {
			ep.serve(x)
		}
	})
}

// placed takes a place among the requests in flight, or answers that there is
// none.
func (x *exchange) placed() bool {
	ok := x.enter()
	if !ok {
		x.problem(newProblem(CodeOverloaded), nil)
	}
	return ok
}

// enter takes a place, which end gives back, and reports whether it was free.
func (x *exchange) enter() bool {
	n := x.s.inFlight.Add(1)
	x.s.o.Metrics.inFlight.Inc()
	x.inside = true
	return x.t.MaxInFlight <= 0 || n <= int64(x.t.MaxInFlight)
}

// leave gives the place back.
func (x *exchange) leave() {
	if x.inside {
		x.inside = false
		x.s.inFlight.Add(-1)
		x.s.o.Metrics.inFlight.Dec()
	}
}

// holdBack keeps a refusal for a moment. It holds no place meanwhile.
func (x *exchange) holdBack() {
	x.leave()
	t := time.NewTimer(heldBack)
	defer t.Stop()
	select {
	case <-t.C:
	case <-x.r.Context().Done():
	}
}

// received reads the body, or answers with what is wrong with it. It holds no
// place until the body is there: how long that takes is the client's to say, and a
// few that send slowly, with a token or with none, would keep everybody out. A
// large body holds one from [placelessBody] on, for the memory that it takes.
func (x *exchange) received(limit int) (body string, ok bool) {
	x.leave()
	body, p, err := x.s.bodies.read(x.r, limit, x.enter)
	if p == nil && !x.inside && !x.enter() {
		p = newProblem(CodeOverloaded)
	}
	if p != nil {
		x.problem(p, err)
		return "", false
	}
	return body, true
}

// allowed finds out who asks.
func (x *exchange) allowed(scope string) bool {
	who, p, err := authorize(x.s.o.Auth, x.r, scope)
	x.who = who
	if p != nil {
		x.problem(p, err)
		return false
	}
	return true
}

// asksOnly reports whether a query has no other parameters than these. It is for
// callers with a token: the addresses of probes and callbacks are often not the
// caller's to choose.
func (x *exchange) asksOnly(known []string) bool {
	faults := unread(x.r.URL.RawQuery, known...)
	if len(faults) > 0 {
		x.problem(problemOf(&order.InvalidError{Faults: faults}), nil)
	}
	return len(faults) == 0
}

// end recovers from a panic, counts and logs, whatever happened.
func (x *exchange) end(ep *endpoint, m *routeMetrics) {
	x.leave()
	status, abort := x.recovered(recover())
	took := x.s.o.Now().Sub(x.started)
	m.observe(x.answer.Kind, status, took)
	x.log(ep, status, took)
	if abort {
		panic(http.ErrAbortHandler) // cuts the connection: half an answer must not pass for a whole one
	}
}

// recovered turns what a handler panicked with into an answer, if that is still
// possible.
func (x *exchange) recovered(v any) (status int, abort bool) {
	switch {
	case v == nil:
		return x.w.Status(), false
	case v == http.ErrAbortHandler: //nolint:errorlint // net/http compares it the same way
		return statusClientGone, true
	}
	cause := fmt.Errorf("panic: %v\n%s", v, debug.Stack())
	if x.w.Written() {
		x.code, x.known, x.cause = CodeInternal, order.OutcomeUnknown, cause
		return http.StatusInternalServerError, true
	}
	p := newProblem(CodeInternal)
	p.retryable = new(true) // the outcome is unknown, and asking again settles it
	x.write(p, cause)
	return p.status, false
}

// problem answers with a problem. The cause is for the log. When the client has
// gone, nothing is written: a proxy that still listens must not take it for the
// truth.
func (x *exchange) problem(p *problem, cause error) {
	if errors.Is(cause, context.Canceled) && x.r.Context().Err() != nil {
		x.cause = cause
		panic(http.ErrAbortHandler)
	}
	if errors.Is(cause, order.ErrOverloaded) {
		x.holdBack()
	}
	x.write(p, cause)
}

func (x *exchange) write(p *problem, cause error) {
	x.leave()
	if x.unguarded && p.outcome == order.OutcomeUnknown {
		p.mayDouble()
	}
	x.code, x.known, x.cause = p.code, p.outcome, cause
	x.s.o.Metrics.problem(p.code)
	x.s.o.Renderer.writeProblem(x.w, p, x.id)
}

// fail answers with the problem that an error stands for.
func (x *exchange) fail(err error) { x.problem(problemOf(err), err) }

// body answers with a document that is made for this request. How long that takes
// is the client's to say too, so it holds a place for a large one only.
func (x *exchange) body(status int, contentType string, body []byte) {
	if len(body) <= placelessBody {
		x.leave()
	}
	x.set("Content-Type", contentType)
	x.set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body) // the client is gone if it fails, and there is nobody to tell
}

// private answers with what only this caller may see, and only now.
func (x *exchange) private(body []byte) {
	x.set("Cache-Control", noStore)
	x.body(http.StatusOK, jsonType, body)
}

// charged takes what a read costs from the caller's rate.
func (x *exchange) charged(cost float64) bool {
	wait, ok := x.s.rates.take(x.who.UserID, cost, &x.t)
	if !ok {
		p := newProblem(CodeRateLimited)
		p.retryAfter = wait
		x.problem(p, nil)
	}
	return ok
}
