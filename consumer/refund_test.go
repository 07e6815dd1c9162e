//go:build unix

package consumer_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/consumer"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// refundsTold is how often a refund was counted, and how often the log has it.
func refundsTold(t *testing.T, o consumer.Options, log *bytes.Buffer) [2]int {
	t.Helper()
	families, err := o.Registerer.(prometheus.Gatherer).Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "oncegate_consumer_refunds_owed_total" {
			counted := family.GetMetric()[0].GetCounter().GetValue()
			return [2]int{int(counted), strings.Count(log.String(), `"refund_owed":true`)}
		}
	}
	require.Fail(t, "no such counter")
	return [2]int{}
}

// Its effect is committed, and whoever had it has died before a word was said.
func TestARefundIsToldByTheHeirOfItsMessage(t *testing.T) {
	t.Parallel()
	s, id := newScene(t, testserver.Redis(t)), newID()
	l := newLedger(id)
	for _, m := range []string{"evt_1", "evt_2"} {
		_, err := l.Apply(t.Context(), order.PaymentMessage{Consumer: group, MessageID: m, OrderID: id, Digest: contentOf(t, id)})
		require.NoError(t, err)
	}
	s.publish("evt_2", body(id))
	s.take()
	o := s.options(l, "heir")
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	stop := s.consume(o)
	s.eventually("it is acknowledged", s.settled)
	stop()
	require.Equal(t, [2]int{1, 1}, refundsTold(t, o, &log))
	require.Equal(t, 1, value(t, o, "oncegate_consumer_messages_total", "duplicate"))
}

// forgetful commits a message, and does not get to know of it at first.
type forgetful struct {
	*ledger
	failed bool
}

func (f *forgetful) Apply(ctx context.Context, m order.PaymentMessage) (order.Transition, error) {
	result, err := f.ledger.Apply(ctx, m)
	if result.RefundOwed && !f.failed {
		f.failed = true
		return order.Transition{}, fmt.Errorf("commit: %w", order.ErrUnavailable)
	}
	return result, err
}

func TestARefundIsToldThoughItsCommitWasNotAnswered(t *testing.T) {
	t.Parallel()
	id := newID()
	q := &queue{messages: []*message.Message{
		message.NewMessage("m1", []byte(body(id))),
		message.NewMessage("m2", []byte(body(id))),
		message.NewMessage("m2", []byte(body(id))), // published twice
	}}
	o := memoryOptions(q, &drawer{}, &forgetful{ledger: newLedger(id)})
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	consumeAll(t, o)
	require.Equal(t, [2]int{1, 1}, refundsTold(t, o, &log))
}

// A broker that keeps no count says at least that a message was delivered before.
func TestARefundIsToldByTheHeirOfARedeliveredMessage(t *testing.T) {
	t.Parallel()
	id := newID()
	l := newLedger(id)
	of := func(m string) *message.Message { return message.NewMessage(m, []byte(body(id))) }
	consumeAll(t, memoryOptions(&queue{messages: []*message.Message{of("m1"), of("m2")}}, &drawer{}, l))

	redelivered := of("m2")
	redelivered.Metadata.Set(amqp.MetadataRedeliveredKey, "true")
	heir := memoryOptions(&queue{messages: []*message.Message{redelivered, of("m2")}}, &drawer{}, l)
	var log bytes.Buffer
	heir.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	consumeAll(t, heir)
	require.Equal(t, [2]int{1, 1}, refundsTold(t, heir, &log))
}

// contentOf is the digest of the event in [body].
func contentOf(t *testing.T, id order.ID) order.Digest {
	t.Helper()
	m := order.PaymentMessage{Type: order.EventPaymentSucceeded, OrderID: id, Amount: 19_90, ProviderReference: "ref-" + id.String()}
	return m.ContentDigest()
}
