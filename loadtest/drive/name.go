package drive

import (
	"net/http"
	"strconv"
	"time"

	"github.com/oncegate/oncegate/loadtest/exact"
	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/wire"
)

// problem is what is read of a problem document.
type problem struct {
	Code, Outcome string
	RetryAfterMS  int64
}

func readProblem(body []byte) problem {
	o, err := exact.Parse(body)
	if err != nil {
		return problem{} // an answer that is no problem document has no code
	}
	p := problem{Code: o.Text("code"), Outcome: o.Text("outcome")}
	if o.Read("retry_after_ms", &p.RetryAfterMS) != nil {
		p.RetryAfterMS = 0 // what is no number asks for nothing
	}
	return p
}

// name gives an exchange its name in the words of the contract, and says what it
// proves.
func name(op history.Op, x *wire.Exchange) answer {
	if x.Fault != wire.NoFault {
		return nameFault(x)
	}
	a := answer{Record: history.Record{HTTP: x.Status, Outcome: measure.Unexpected}}
	switch {
	case op == history.Status && (x.Status == http.StatusOK || x.Status == http.StatusNotFound):
		a.nameState(x)
	case op == history.Callback && x.Status/100 == 2:
		a.Outcome, a.Proof = measure.Accepted, history.Decided
		a.Body = x.Body
	case x.Status/100 == 2 && op != history.Status:
		a.Outcome, a.Proof = measure.Created, history.Decided
		if replayed(x) {
			a.Outcome = measure.Replayed
		}
		a.Body, a.Location = x.Body, x.Header.Get("Location")
	default:
		a.nameRefusal(x)
	}
	return a
}

// nameState names what became of a request. A success that says nothing of it is
// no answer, and must not pass for one that knows of no request.
func (a *answer) nameState(x *wire.Exchange) {
	a.Outcome, a.Proof = measure.Read, history.NoEffect
	if x.Status == http.StatusNotFound {
		return
	}
	switch s := state(x.Body); s {
	case "in_progress", "succeeded", "failed":
		a.State = s
	default:
		a.Outcome, a.Body = measure.Unexpected, x.Body
	}
}

func (a *answer) nameRefusal(x *wire.Exchange) {
	p := readProblem(x.Body)
	a.retryAfter = retryAfter(&p, x.Header)
	// A server error proves nothing unless it says so; a refusal made nothing.
	if x.Status < 500 || p.Outcome == "not_committed" || p.Outcome == "rejected" {
		a.Proof = history.NoEffect
	}
	switch {
	case p.Code == "REQUEST_IN_PROGRESS" && x.Status == http.StatusConflict:
		a.Outcome = measure.InProgress
	case p.Code == "IDEMPOTENCY_KEY_REUSED" && (x.Status == http.StatusConflict || x.Status == http.StatusUnprocessableEntity):
		a.Outcome = measure.Reused
	case p.Code == "ORDER_ALREADY_EXISTS" && x.Status == http.StatusConflict,
		(p.Code == "INSUFFICIENT_BALANCE" || p.Code == "OUT_OF_STOCK") && x.Status == http.StatusUnprocessableEntity:
		a.Outcome, a.Proof = measure.Rejected, history.Decided
		a.Body, a.Replayed = x.Body, replayed(x)
	case x.Status == http.StatusTooManyRequests:
		a.Outcome = measure.Limited
	case x.Status == http.StatusBadGateway, x.Status == http.StatusServiceUnavailable, x.Status == http.StatusGatewayTimeout:
		a.Outcome = measure.Unavailable
	default:
		a.Body = x.Body
	}
}

func nameFault(x *wire.Exchange) answer {
	a := answer{Record: history.Record{Outcome: measure.Transport}}
	switch x.Fault {
	case wire.FaultTimeout:
		a.Outcome = measure.Timeout
	case wire.FaultClient:
		a.Outcome = measure.ClientLimit
	case wire.FaultAborted:
		a.Outcome = measure.HungUp
	default:
	}
	if !x.Wrote {
		a.Proof = history.NeverSent
	}
	return a
}

func replayed(x *wire.Exchange) bool { return x.Header.Get("Idempotent-Replayed") == "true" }

// retryAfter is how long the server asks to wait, finely if it says so; 0 when it
// asks for nothing.
func retryAfter(p *problem, h http.Header) time.Duration {
	const most = time.Hour // no run waits as long
	if p.RetryAfterMS > 0 {
		return time.Duration(min(p.RetryAfterMS, most.Milliseconds())) * time.Millisecond
	}
	s, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return min(time.Duration(s)*time.Second, most)
}

// state reads the state of a request; "" when the answer names none.
func state(body []byte) string {
	o, err := exact.Parse(body)
	if err != nil {
		return ""
	}
	return o.Text("state")
}

func orderID(body []byte) string {
	o, err := exact.Parse(body)
	if err != nil {
		return ""
	}
	return o.Text("order_id")
}
