package gateway

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The headers of Standard Webhooks, in canonical form.
const (
	headerWebhookID        = "Webhook-Id"
	headerWebhookTimestamp = "Webhook-Timestamp"
	headerWebhookSignature = "Webhook-Signature"

	webhookIDName = "webhook-id" // as senders write it
)

const (
	// webhookTolerance is how far a sender's clock and ours may be apart. It
	// also bounds how long a signature that somebody has overheard is good for.
	webhookTolerance = 5 * time.Minute
	// MinWebhookSecretLen is the shortest secret that the standard allows, in
	// bytes once decoded.
	MinWebhookSecretLen = 24
)

// Webhooks verifies the signatures of payment callbacks (Standard Webhooks:
// HMAC-SHA256 over id, timestamp and raw body; a timestamp is good for five
// minutes). Several secrets at once let a secret be replaced without a gap.
type Webhooks struct{ secrets []*standardwebhooks.Webhook }

// NewWebhooks takes secrets as the standard writes them: base64, with or
// without the prefix whsec_.
func NewWebhooks(secrets []string) (*Webhooks, error) {
	if len(secrets) == 0 {
		return nil, errors.New("webhooks need a secret")
	}
	w := &Webhooks{}
	for i, secret := range secrets {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			return nil, fmt.Errorf("webhook secret %d is not base64", i+1) // the cause would repeat a part of it
		}
		if len(raw) < MinWebhookSecretLen {
			return nil, fmt.Errorf("webhook secret %d must have at least %d bytes", i+1, MinWebhookSecretLen)
		}
		verifier, err := standardwebhooks.NewWebhookRaw(raw)
		if err != nil {
			return nil, fmt.Errorf("webhook secret %d: %w", i+1, err)
		}
		w.secrets = append(w.secrets, verifier)
	}
	return w, nil
}

var (
	errWebhookHeaders   = errors.New("webhook-id, webhook-timestamp and webhook-signature are needed, once each")
	errWebhookTimestamp = errors.New("webhook-timestamp is not a number of seconds")
	errWebhookTime      = errors.New("webhook-timestamp is more than five minutes away from now")
	errWebhookSignature = errors.New("no signature is that of a secret")
)

// timely tells whether the headers are there and are of now. It needs no body:
// what it refuses is not read.
func (w *Webhooks) timely(h http.Header, now time.Time) error {
	for _, name := range []string{headerWebhookID, headerWebhookTimestamp, headerWebhookSignature} {
		if v := h[name]; len(v) != 1 || v[0] == "" {
			return errWebhookHeaders
		}
	}
	sent, err := strconv.ParseInt(h[headerWebhookTimestamp][0], 10, 64)
	tolerance := int64(webhookTolerance / time.Second)
	switch {
	case err != nil:
		return errWebhookTimestamp // the cause would repeat what anybody can send
	case sent < now.Unix()-tolerance, sent > now.Unix()+tolerance:
		return errWebhookTime
	}
	return nil
}

// verify compares in constant time. The time itself is timely's to judge, by
// the clock of this gateway and not that of the library.
func (w *Webhooks) verify(body []byte, h http.Header) error {
	for _, secret := range w.secrets {
		if secret.VerifyIgnoringTimestamp(body, h) == nil {
			return nil
		}
	}
	return errWebhookSignature
}
