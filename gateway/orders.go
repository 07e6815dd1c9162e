package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/oncegate/oncegate/internal/crashpoint"
	"github.com/oncegate/oncegate/order"
)

func (s *Server) createOrder(x *exchange) {
	x.submit(order.CreateOrder, x.t.MaxOrderBody, decodeOrder)
}

func (s *Server) createBatch(x *exchange) {
	rows := min(x.t.MaxRows, order.MaxLines)
	x.submit(order.CreateBatch, x.t.MaxBatchBody, func(body string) draft { return decodeBatch(body, rows) })
}

// submit takes a request through all that can refuse it before anything is
// claimed for it, and then has it decided.
func (x *exchange) submit(op order.Operation, limit int, decode func(string) draft) {
	if !jsonBody(x.r.Header) {
		x.problem(newProblem(CodeUnsupportedMediaType), nil)
		return
	}
	key, p := idempotencyKey(x.r.Header, x.t.KeyRequired)
	if p != nil {
		x.problem(p, nil)
		return
	}
	x.key = key
	body, ok := x.received(limit)
	if !ok {
		return
	}
	c, err := decode(body).command(op, x.who.UserID, key)
	if err != nil {
		// The faults are the caller's to read; paths can hold its own words.
		x.problem(problemOf(err), nil)
		return
	}
	x.digest, x.unguarded = c.Digest, !c.Guarded()
	cost := float64(len(c.Lines))
	if !x.charged(cost) {
		return
	}
	preferred := preferredWait(x.r.Header, x.t.MaxWait)
	wait := preferred
	if wait > 0 {
		// The body's time is a part of it. That for the answer begins with the header,
		// too, and has room for the longest wait or the slowest body, not for both.
		wait = max(0, wait-x.s.o.Now().Sub(x.started))
	}
	// Without an address to ask at there is nothing to say in a 202.
	later := op == order.CreateBatch && statusURL(key) != "" && prefersLater(x.r.Header)
	var a order.Answer
	if later {
		a, err = x.s.o.Submitter.Defer(x.r.Context(), c)
	} else {
		a, err = x.s.o.Submitter.Submit(x.r.Context(), c, wait)
	}
	if err != nil || a.Kind == order.Replayed || a.Kind == order.InProgress {
		x.s.rates.giveBack(x.who.UserID, cost, &x.t)
	}
	crashpoint.Hit(crashpoint.BeforeAnswer)
	if preferred > 0 && !later {
		x.set("Preference-Applied", "wait="+strconv.Itoa(int(preferred/time.Second)))
	}
	if err != nil {
		p := problemOf(err)
		if p.retryAfter > 0 || p.outcome == order.OutcomeUnknown {
			p.statusURL = statusURL(key)
		}
		x.problem(p, err)
		crashpoint.Hit(crashpoint.AfterAnswer)
		return
	}
	x.answer = a
	x.show()
	crashpoint.Hit(crashpoint.AfterAnswer)
}

// show writes what was decided.
func (x *exchange) show() {
	a := &x.answer
	switch a.Kind {
	case order.Created:
		x.receipt(&a.Receipt.Response)
	case order.Replayed:
		x.set("Idempotent-Replayed", "true")
		x.set("Cache-Control", noStore)
		x.receipt(&a.Receipt.Response)
	case order.Accepted:
		x.accepted()
	case order.Rejected:
		if a.Rejection != nil && a.Rejection.Code == order.OrderAlreadyExists {
			x.conflicted(CodeOrderExists, conflictReason(a.Rejection))
		}
		x.set("Cache-Control", noStore)
		x.receipt(&a.Receipt.Response)
	case order.Reused:
		x.conflicted(CodeKeyReused, a.Layer.String())
		p := newProblem(CodeKeyReused)
		p.status = reusedStatus(&x.t)
		x.problem(p, nil)
	case order.InProgress:
		p := newProblem(CodeInProgress)
		p.retryAfter = max(a.RetryAfter, time.Millisecond)
		p.statusURL = statusURL(x.key)
		x.problem(p, nil)
	}
}

// accepted says where to ask what becomes of a request, and when.
func (x *exchange) accepted() {
	url := statusURL(x.key)
	p := problem{retryAfter: max(x.answer.RetryAfter, time.Second)}
	x.set("Location", url)
	x.set("Retry-After", strconv.FormatInt(p.seconds(), 10))
	x.set("Preference-Applied", "respond-async")
	x.set("Cache-Control", noStore)
	b := appendText([]byte{'{'}, "state", stateInProgress)
	b = appendInt(b, "retry_after_ms", p.retryAfter.Milliseconds())
	x.body(http.StatusAccepted, jsonType, append(appendText(b, "status_url", url), '}'))
}

// receipt writes the bytes that a committed transaction wrote, and no others.
func (x *exchange) receipt(r *order.Response) {
	if r.Location != "" {
		x.set("Location", r.Location)
	}
	x.body(r.Status, r.ContentType, r.Body)
}
