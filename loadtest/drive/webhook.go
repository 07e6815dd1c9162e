package drive

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oncegate/oncegate/loadtest/decimal"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/wire"
)

// Signer signs payment callbacks as Standard Webhooks asks.
type Signer struct{ secret []byte }

// NewSigner takes a secret as Standard Webhooks writes it: base64, with "whsec_"
// before it or without.
func NewSigner(secret string) (*Signer, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(b) == 0 {
		return nil, errors.New("the webhook secret must be base64, with or without whsec_ before it")
	}
	return &Signer{b}, nil
}

// request is one delivery: the same message id and body for every copy.
func (s *Signer) request(it *scenario.Intent, orderID string, now time.Time) *wire.Request {
	id := "msg-" + it.Key
	at := strconv.FormatInt(now.Unix(), 10)
	body := encode(map[string]any{
		"type": "payment.succeeded",
		"data": map[string]any{
			"order_id":           orderID,
			"amount":             decimal.Text(it.Lines[0].Hundredths),
			"provider_reference": "ref-" + it.Key,
		},
	})
	mac := hmac.New(sha256.New, s.secret)
	_, _ = fmt.Fprintf(mac, "%s.%s.", id, at)
	_, _ = mac.Write(body)
	return &wire.Request{
		Method: http.MethodPost,
		Path:   "/webhooks/payments",
		Fields: []wire.Field{
			{Name: "webhook-id", Value: id},
			{Name: "webhook-timestamp", Value: at},
			{Name: "webhook-signature", Value: "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
		},
		Body: body,
	}
}
