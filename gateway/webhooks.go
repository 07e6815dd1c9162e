package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/oncegate/oncegate/order"
)

// The headers of Standard Webhooks, in canonical form.
const (
	headerWebhookID        = "Webhook-Id"
	headerWebhookTimestamp = "Webhook-Timestamp"
	headerWebhookSignature = "Webhook-Signature"
)

// webhookConsumer names the callbacks among those who deduplicate messages.
const webhookConsumer = "webhook"

// maxEventBody bounds the body of a callback, in bytes.
const maxEventBody = 16 << 10

// Webhooks verifies the signatures of payment callbacks (Standard Webhooks:
// HMAC-SHA256 over id, timestamp and raw body; a timestamp is good for five
// minutes). Several secrets at once let a secret be replaced without a gap.
type Webhooks struct{ secrets []*standardwebhooks.Webhook }

// NewWebhooks takes secrets as the standard writes them: base64, with or
// without the prefix whsec_.
func NewWebhooks(secrets []string) (*Webhooks, error) {
	w := &Webhooks{}
	for i, secret := range secrets {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return nil, fmt.Errorf("webhook secret %d is not base64", i+1)
		}
		w.secrets = append(w.secrets, verifier)
	}
	if len(w.secrets) == 0 {
		return nil, errors.New("webhooks need a secret")
	}
	return w, nil
}

var errHeaders = errors.New("webhook-id, webhook-timestamp and webhook-signature are needed, once each")

func (w *Webhooks) verify(body string, h http.Header) error {
	for _, name := range []string{headerWebhookID, headerWebhookTimestamp, headerWebhookSignature} {
		if len(h[name]) != 1 {
			return errHeaders
		}
	}
	var err error
	for _, secret := range w.secrets {
		if err = secret.Verify([]byte(body), h); err == nil {
			return nil
		}
	}
	return err
}

// paymentEvent deals with one delivery of a payment event. It answers 2xx once
// the event, its effect and what deduplicates it are committed, and not before.
func (s *Server) paymentEvent(x *exchange) {
	if !jsonBody(x.r.Header) {
		x.problem(newProblem(CodeUnsupportedMediaType), nil)
		return
	}
	body, p, err := s.bodies.read(x.r, maxEventBody)
	if p != nil {
		x.problem(p, err)
		return
	}
	if err := s.o.Webhooks.verify(body, x.r.Header); err != nil {
		x.problem(newProblem(CodeSignatureInvalid), err)
		return
	}
	m, err := decodePayment(body)
	if err == nil {
		m.Consumer, m.MessageID = webhookConsumer, x.r.Header.Get(headerWebhookID)
		m.Digest, m.Body = sha256.Sum256([]byte(body)), []byte(body)
		err = m.Validate()
	}
	if err != nil {
		x.problem(problemOf(err), nil)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), x.t.ChangeBudget)
	defer cancel()
	result, err := s.o.Lifecycle.Apply(ctx, m)
	switch {
	case errors.Is(err, order.ErrNotFound):
		p := newProblem(CodeOrderNotThere)
		p.retryAfter = 5 * time.Second
		x.problem(p, nil)
	case err != nil:
		x.fail(err)
	default:
		s.o.Metrics.paymentEvent(&result)
		b := appendText([]byte{'{'}, "effect", string(result.Effect))
		b = appendBool(b, "duplicate", result.Duplicate)
		x.private(append(appendBool(b, "refund_owed", result.RefundOwed), '}'))
	}
}

// decodePayment reads {"type":…,"data":{"order_id":…,"amount":…,"provider_reference":…}}.
func decodePayment(body string) (order.PaymentMessage, error) {
	var m order.PaymentMessage
	d := decoder{scanner: scanner{s: body}}
	if d.begin() {
		d.payment(&m)
		d.end()
	}
	if len(d.faults) > 0 {
		return m, &order.InvalidError{Faults: d.faults}
	}
	return m, nil
}

func (d *decoder) payment(m *order.PaymentMessage) {
	var seen uint8
	d.members(noRow, func(name string) {
		switch {
		case name == "type" && d.wanted(noRow, name, &seen, 1):
			text, _ := d.textMember(noRow, name)
			m.Type = order.EventType(text)
		case name == "data" && d.wanted(noRow, name, &seen, 2):
			if !d.take('{') {
				d.at(noRow, name, "must be an object")
				d.skip(1)
				return
			}
			d.paymentData(m)
		case name != "type" && name != "data":
			d.wanted(noRow, name, &seen, 0)
		}
	})
	if d.fault == "" && seen&2 == 0 {
		d.at(noRow, "data", "is required")
	}
}

func (d *decoder) paymentData(m *order.PaymentMessage) {
	var seen uint8
	d.members(noRow, func(name string) {
		path := "data." + name
		switch {
		case name == "order_id" && d.wanted(noRow, path, &seen, 1):
			if text, ok := d.textMember(noRow, path); ok {
				id, err := order.ParseID(text)
				if err != nil {
					d.at(noRow, path, err.Error())
				}
				m.OrderID = id
			}
		case name == "amount" && d.wanted(noRow, path, &seen, 2):
			m.Amount = d.amountMember(noRow, path)
		case name == "provider_reference" && d.wanted(noRow, path, &seen, 4):
			m.ProviderReference, _ = d.textMember(noRow, path)
		case name != "order_id" && name != "amount" && name != "provider_reference":
			d.wanted(noRow, path, &seen, 0)
		}
	})
	if d.fault == "" && seen&1 == 0 {
		d.at(noRow, "data.order_id", "is required")
	}
}
