package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/oncegate/oncegate/order"
)

const (
	// webhookConsumer names the callbacks among those who deduplicate messages.
	webhookConsumer = "webhook"
	// maxEventBody bounds the body of a callback, in bytes.
	maxEventBody = 16 << 10
	// earlyEventDelay is when an event that came before its order may come again:
	// an order commits within a request's budget.
	earlyEventDelay = 5 * time.Second
)

// paymentEvent deals with one delivery of a payment event. It answers 2xx once
// the event, its effect and what deduplicates it are committed, and not before.
func (s *Server) paymentEvent(x *exchange) {
	if !jsonBody(x.r.Header) {
		x.problem(newProblem(CodeUnsupportedMediaType), nil)
		return
	}
	if err := s.o.Webhooks.timely(x.r.Header, s.o.Now()); err != nil {
		x.unsigned(err)
		return
	}
	body, ok := x.received(maxEventBody)
	if !ok {
		return
	}
	raw := []byte(body)
	if err := s.o.Webhooks.verify(raw, x.r.Header); err != nil {
		x.unsigned(err)
		return
	}
	m, err := decodePayment(body, x.r.Header.Get(headerWebhookID))
	if err != nil {
		// The faults are the sender's to read; paths can hold its own words.
		x.problem(problemOf(err), nil)
		return
	}
	m.Body = raw
	// From here on the work is the server's: a sender that leaves undoes nothing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), x.t.ChangeBudget)
	defer cancel()
	x.change, err = s.o.Lifecycle.Apply(ctx, m)
	switch {
	case errors.Is(err, order.ErrNotFound):
		p := newProblem(CodeOrderNotThere)
		p.retryAfter = earlyEventDelay
		x.problem(p, nil)
	case err != nil:
		x.fail(err)
	default:
		x.refund = x.change.RefundOwed && s.refunds.first(m.MessageID)
		s.o.Metrics.paymentEvent(&x.change, x.refund)
		b := appendText([]byte{'{'}, "effect", string(x.change.Effect))
		b = appendBool(b, "duplicate", x.change.Duplicate)
		x.private(append(appendBool(b, "refund_owed", x.change.RefundOwed), '}'))
	}
}

// unsigned refuses what nobody who knows a secret has signed just now.
func (x *exchange) unsigned(cause error) {
	p := newProblem(CodeSignatureInvalid)
	p.challenge = challengeSignature
	x.problem(p, cause)
}
