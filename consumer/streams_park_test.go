//go:build unix

package consumer_test

import (
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/consumer"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// It is not tried again before the other has come, however busy the machine is.
func TestMessageOfAMissingOrderHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s, missing, there := newScene(t, testserver.Redis(t)), newID(), newID()
	l := newLedger(there)
	o := s.options(l, "a")
	o.Workers, o.RetryDelay, o.MaxRetryDelay = 1, claimAfter, claimAfter
	s.publish("evt_missing", body(missing))
	s.publish("evt_there", body(there))
	arrivals := make(chan string, 2)
	l.setBefore(func(m order.PaymentMessage) error {
		select {
		case arrivals <- m.MessageID:
		default: // those after the first two
		}
		return nil
	})
	s.consume(o)
	require.Equal(t, "evt_missing", <-arrivals)
	require.Equal(t, "evt_there", <-arrivals, "it does not wait for the first")
	s.eventually("it has its effect", func() bool { return l.once(there) })
}

func TestMessageOfAMissingOrderIsParked(t *testing.T) {
	t.Parallel()
	s, missing := newScene(t, testserver.Redis(t)), newID()
	l := newLedger()
	o := s.options(l, "a")
	s.publish("evt_missing", body(missing))
	s.consume(o)
	s.eventually("it is settled", func() bool { return len(s.parked()) == 1 && s.settled() })
	require.Equal(t, 3, l.callCount())
	m := s.parked()[0]
	require.Equal(t, body(missing), string(m.Payload))
	require.Equal(t, "order_not_found", m.Metadata.Get(consumer.ParkedReasonKey))
	require.Contains(t, m.Metadata.Get(consumer.ParkedDetailKey), "not found")
	require.Equal(t, "3", m.Metadata.Get(consumer.ParkedDeliveriesKey))
	require.Equal(t, s.topic, m.Metadata.Get(consumer.ParkedTopicKey))
	require.Equal(t, group, m.Metadata.Get(consumer.ParkedConsumerKey))
	require.Equal(t, "evt_missing", m.Metadata.Get(consumer.MessageIDKey))
	require.NotEmpty(t, m.Metadata.Get(consumer.ParkedEntryKey))
	require.NotEmpty(t, m.Metadata.Get(consumer.ParkedAtKey))
	require.Equal(t, 1, value(t, o, "oncegate_consumer_parked_total", "order_not_found"))
}

func TestEventThatComesBeforeItsOrderWaitsForIt(t *testing.T) {
	t.Parallel()
	s, id := newScene(t, testserver.Redis(t)), newID()
	l := newLedger()
	o := s.options(l, "a")
	o.MaxDeliveries = 1000
	s.publish("evt_1", body(id))
	s.consume(o)
	s.eventually("it is tried in vain", func() bool { return l.callCount() >= 2 })
	l.place(id)
	s.eventually("it takes effect", func() bool { return l.once(id) && s.settled() })
	require.Empty(t, s.parked())
}

func TestCountOfDeliveriesSurvivesARestart(t *testing.T) {
	t.Parallel()
	s := newScene(t, testserver.Redis(t))
	l := newLedger()
	s.publish("evt_1", body(newID()))
	first := s.options(l, "a")
	first.MaxDeliveries = 1000
	stop := s.consume(first)
	s.eventually("it is tried", func() bool { return l.callCount() >= 5 })
	stop()
	before := l.callCount()
	pending, err := s.redis.XPendingExt(t.Context(), &redis.XPendingExtArgs{Stream: s.topic, Group: group, Start: "-", End: "+", Count: 10}).Result()
	require.NoError(t, err)
	require.Len(t, pending, 1)
	require.EqualValues(t, before, pending[0].RetryCount, "every delivery that counts is counted, and no other")

	second := s.options(l, "b")
	second.MaxDeliveries = before + 2
	s.consume(second)
	s.eventually("it is parked", func() bool { return len(s.parked()) == 1 && s.settled() })
	require.Equal(t, before+2, l.callCount())
}

func TestOutageOfTheLedgerNeverParks(t *testing.T) {
	t.Parallel()
	s, id := newScene(t, testserver.Redis(t)), newID()
	l := newLedger(id)
	l.setBefore(func(order.PaymentMessage) error { return fmt.Errorf("apply: %w", order.ErrUnavailable) })
	o := s.options(l, "a")
	o.MaxDeliveries = 1
	s.publish("evt_1", body(id))
	stop := s.consume(o)
	s.eventually("it is tried again and again", func() bool { return l.callCount() > 10 })
	stop()
	pending, err := s.redis.XPendingExt(t.Context(), &redis.XPendingExtArgs{Stream: s.topic, Group: group, Start: "-", End: "+", Count: 10}).Result()
	require.NoError(t, err)
	require.Len(t, pending, 1)
	require.Zero(t, pending[0].RetryCount, "none of these deliveries counts")
	l.setBefore(nil)
	o = s.options(l, "b")
	o.MaxDeliveries = 1
	s.consume(o)
	s.eventually("it takes effect", func() bool { return l.once(id) && s.settled() })
	require.Empty(t, s.parked())
}

func TestMessageThatKillsItsConsumersIsParkedUntried(t *testing.T) {
	t.Parallel()
	s, id := newScene(t, testserver.Redis(t)), newID()
	l := newLedger(id)
	s.publish("evt_1", body(id))
	s.age(s.take().ID, 3)
	s.consume(s.options(l, "a"))
	s.eventually("it is parked", func() bool { return len(s.parked()) == 1 && s.settled() })
	require.Zero(t, l.callCount())
	require.Equal(t, "deliveries_exhausted", s.parked()[0].Metadata.Get(consumer.ParkedReasonKey))
	require.Equal(t, "4", s.parked()[0].Metadata.Get(consumer.ParkedDeliveriesKey))
}

func TestUndecodableEntriesAreParkedAtOnceAndEndNothing(t *testing.T) {
	t.Parallel()
	s, id := newScene(t, testserver.Redis(t)), newID()
	l := newLedger(id)
	uuid := redisstream.UUIDHeaderKey
	entries := [][]any{
		{"message_id", "m1", "payload", "{"},
		{"message_id", "m2"},
		{"payload", body(id)},
		{"x", "y"},
		{uuid, "m5", "metadata", "\xc1", "payload", body(id)},
		{uuid, "m6", "metadata", "\x81\xb7_watermill_message_uuid\xa1x", "payload", "no JSON"},
		{uuid, "", "payload", body(id)},
	}
	names := make([]string, 0, len(entries))
	for _, fields := range entries {
		names = append(names, s.add(fields...))
	}
	s.add("message_id", "good", "payload", body(id))
	s.consume(s.options(l, "a"))
	s.eventually("all are settled", func() bool { return len(s.parked()) == len(entries) && s.settled() })
	require.True(t, l.once(id))
	require.Equal(t, 1, l.callCount())
	var parked []string
	for _, m := range s.parked() {
		require.Equal(t, "undecodable", m.Metadata.Get(consumer.ParkedReasonKey))
		require.NotEmpty(t, m.Metadata.Get(consumer.ParkedDetailKey))
		require.Equal(t, "1", m.Metadata.Get(consumer.ParkedDeliveriesKey))
		parked = append(parked, m.Metadata.Get(consumer.ParkedEntryKey))
	}
	require.ElementsMatch(t, names, parked)
}

func TestReusedMessageIDIsKeptByTheLedger(t *testing.T) {
	t.Parallel()
	s, id, other := newScene(t, testserver.Redis(t)), newID(), newID()
	l := newLedger(id, other)
	o := s.options(l, "a")
	o.Workers = 1
	s.publish("evt_1", body(id))
	s.publish("evt_1", body(other))
	s.consume(o)
	s.eventually("both are acknowledged", func() bool { return l.callCount() == 2 && s.settled() })
	require.True(t, l.once(id))
	require.False(t, l.once(other))
	require.Equal(t, 1, value(t, o, "oncegate_consumer_parked_total", "id_reused"))
	require.Empty(t, s.parked())
}
