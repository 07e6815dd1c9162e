//go:build linux

package chaos

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oncegate/oncegate/loadtest/decimal"
)

// bought is an order that a customer has.
type bought struct {
	id     string
	wish   // without its other lines
	status string
}

// payment is a message of the provider. Nobody else has its reference.
type payment struct {
	id     string
	of     *bought
	effect string // as it was answered first
	owed   bool
}

// buy notes the orders of an answer that made some.
func (m *model) buy(x wish, a answer) error {
	var said struct {
		ID     string `json:"order_id"`
		Orders []struct {
			ID string `json:"order_id"`
		} `json:"orders"`
	}
	if err := json.Unmarshal([]byte(a.body), &said); err != nil {
		return err
	}
	ids := []string{said.ID}
	if x.lines > 0 {
		ids = nil
		for _, o := range said.Orders {
			ids = append(ids, o.ID)
		}
	}
	if len(ids) != x.count() || slices.Contains(ids, "") {
		return fmt.Errorf("%d orders were wanted: %s", x.count(), a.body)
	}
	for _, id := range ids {
		m.bought = append(m.bought, &bought{id, wish{cents: x.cents, quantity: x.quantity}, "PENDING"})
	}
	return nil
}

// cancel is what a cancellation comes to.
func (m *model) cancel(o *bought) (status int, code string) {
	switch o.status {
	case "PAID":
		return http.StatusConflict, "ORDER_STATE_CONFLICT"
	case "PENDING":
		o.status = "CANCELLED"
		m.balance, m.stock = m.balance+o.cents, m.stock+o.quantity
	}
	return http.StatusOK, ""
}

// pay is what a payment that was not seen before comes to.
func (m *model) pay(o *bought) (effect string, owed bool) {
	switch o.status {
	case "PENDING":
		o.status = "PAID"
		return "applied", false
	case "PAID":
		return "already_there", true // a second payment
	default:
		return "impossible", true
	}
}

// anOrder is one that the customer has.
func (s *shopper) anOrder(rt *rapid.T) *bought {
	if len(s.model.bought) == 0 {
		rt.Skip("there is no order yet")
	}
	return rapid.SampledFrom(s.model.bought).Draw(rt, "order")
}

// cancel cancels an order, which may be cancelled already, or paid.
func (s *shopper) cancel(rt *rapid.T) {
	o := s.anOrder(rt)
	begin := rapid.IntRange(0, gatewayCount-1).Draw(rt, "first gateway")
	a, err := s.persist(begin, func(g *gateway) (answer, error) {
		return ask(http.MethodPost, "http://"+g.addr+"/api/orders/"+o.id+"/cancel", s.bearer, "", "")
	})
	require.NoError(s.rt, err)
	status, code := s.model.cancel(o)
	require.Equal(s.rt, status, a.status, a.body)
	require.Equal(s.rt, code, a.code())
	if code == "" {
		require.Contains(s.rt, a.body, `"status":"CANCELLED"`)
	}
}

// pay delivers a payment, a new one or once more.
func (s *shopper) pay(rt *rapid.T) {
	o := s.anOrder(rt)
	known := len(s.model.payments)
	at := rapid.IntRange(0, known).Draw(rt, "payment")
	begin := rapid.IntRange(0, gatewayCount-1).Draw(rt, "first gateway")
	if at == known {
		s.model.payments = append(s.model.payments, &payment{id: fmt.Sprintf("%s-%d", s.user, at), of: o})
	}
	p := s.model.payments[at]
	a, err := s.persist(begin, func(g *gateway) (answer, error) { return p.deliver(g) })
	require.NoError(s.rt, err)
	require.Equal(s.rt, http.StatusOK, a.status, a.body)
	var said struct {
		Effect    string `json:"effect"`
		Duplicate bool   `json:"duplicate"`
		Owed      bool   `json:"refund_owed"`
	}
	require.NoError(s.rt, json.Unmarshal([]byte(a.body), &said))
	if at == known {
		p.effect, p.owed = s.model.pay(p.of)
	} else {
		require.True(s.rt, said.Duplicate, a.body)
	}
	require.Equal(s.rt, p.effect, said.Effect, a.body)
	require.Equal(s.rt, p.owed, said.Owed, a.body)
}

// deliver sends the message as its provider does.
func (p *payment) deliver(g *gateway) (answer, error) {
	body := fmt.Sprintf(`{"type":"payment.succeeded","data":{"order_id":%q,"amount":%q,"provider_reference":%q}}`, p.of.id, decimal.Text(p.of.cents), p.id)
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(webhookSecret, "whsec_"))
	if err != nil {
		return answer{}, err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", p.id, at, body)
	return askWith(http.MethodPost, "http://"+g.addr+"/webhooks/payments", body, map[string]string{
		"Webhook-Id": p.id, "Webhook-Timestamp": at, "Webhook-Signature": "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	})
}

// requireChanges compares states and debts with the model.
func (s *shopper) requireChanges() {
	states, err := s.w.admin.QueryContext(context.Background(), "SELECT order_id, status FROM orders WHERE user_id = ?", s.user)
	require.NoError(s.rt, err)
	defer func() { require.NoError(s.rt, states.Close()) }()
	found := map[string]string{}
	for states.Next() {
		var id []byte
		var status string
		require.NoError(s.rt, states.Scan(&id, &status))
		found[fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])] = status
	}
	require.NoError(s.rt, states.Err())
	want := map[string]string{}
	for _, o := range s.model.bought {
		want[o.id] = o.status
	}
	require.Equal(s.rt, want, found)
	debts := 0
	for _, p := range s.model.payments {
		if p.owed {
			debts++
		}
	}
	var owed int
	require.NoError(s.rt, s.w.admin.QueryRowContext(context.Background(),
		"SELECT COUNT(*) FROM order_events e JOIN orders o ON o.order_id = e.order_id WHERE o.user_id = ? AND e.refund_owed", s.user).Scan(&owed))
	require.Equal(s.rt, debts, owed, "payments that are owed back")
}
