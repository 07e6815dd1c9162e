package consumer

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestOpenNeedsNoBroker(t *testing.T) {
	t.Parallel()
	for _, o := range []BrokerOptions{
		{Kind: Redis, Redis: &RedisOptions{Client: &redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}}}},
		{Kind: Kafka, Kafka: &KafkaOptions{Brokers: []string{"127.0.0.1:1"}}},
		{Kind: AMQP, AMQP: &AMQPOptions{URL: "amqp://127.0.0.1:1/"}},
	} {
		o.Group, o.Logger = "g", slog.New(slog.DiscardHandler)
		subscriber, publisher, err := Open(o)
		require.NoError(t, err)
		_, err = subscriber.Subscribe(t.Context(), "payments")
		require.Error(t, err)
		require.Error(t, publisher.Publish("parked", message.NewMessage("m", nil)))
		require.NoError(t, subscriber.Close())
		require.NoError(t, publisher.Close())
	}
}

func TestOpenRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	logger := slog.New(slog.DiscardHandler)
	for fault, o := range map[string]BrokerOptions{
		"a group is required":                    {Kind: Redis, Logger: logger},
		"a logger is required":                   {Kind: Redis, Group: "g"},
		"takes the options":                      {Kind: Redis, Group: "g", Logger: logger},
		"must be redis":                          {Kind: "nats", Group: "g", Logger: logger},
		`kind "kafka" takes`:                     {Kind: Kafka, Group: "g", Logger: logger, Kafka: &KafkaOptions{}, Redis: &RedisOptions{}},
		"a broker is required":                   {Kind: Kafka, Group: "g", Logger: logger, Kafka: &KafkaOptions{}},
		"how to connect":                         {Kind: Redis, Group: "g", Logger: logger, Redis: &RedisOptions{}},
		"consumer: amqp: the URL cannot be read": {Kind: AMQP, Group: "g", Logger: logger, AMQP: &AMQPOptions{URL: "http://x"}},
	} {
		_, _, err := Open(o)
		require.ErrorContains(t, err, fault)
	}
}

// Who waits for a connection reads nothing, and cannot acknowledge.
func TestEveryWorkerHasAConnectionToRedis(t *testing.T) {
	t.Parallel()
	subscriber, publisher, err := Open(BrokerOptions{
		Kind: Redis, Group: "g", Logger: slog.New(slog.DiscardHandler),
		Redis: &RedisOptions{Client: &redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}}},
	})
	require.NoError(t, err)
	client, ok := subscriber.(*StreamSubscriber).o.Client.(*redis.Client)
	require.True(t, ok)
	require.Greater(t, client.Options().PoolSize, maxWorkers)
	require.NoError(t, subscriber.Close())
	require.NoError(t, publisher.Close())
}

func TestKafkaLosesNothingOfANewGroupAndConfirmsAll(t *testing.T) {
	t.Parallel()
	c := (&KafkaOptions{TLS: &tls.Config{MinVersion: tls.VersionTLS13}, Username: "u", Password: "p"}).sarama()
	require.NoError(t, c.Validate())
	require.Equal(t, sarama.OffsetOldest, c.Consumer.Offsets.Initial)
	require.Equal(t, sarama.WaitForAll, c.Producer.RequiredAcks)
	require.Equal(t, sarama.ReadCommitted, c.Consumer.IsolationLevel)
	// Who joins is answered when the last has let go of the message in its hand.
	require.Greater(t, c.Net.ReadTimeout, c.Consumer.Group.Rebalance.Timeout)
	o := Options{Timeout: 10 * time.Second, MaxRetryDelay: time.Minute}
	require.Greater(t, c.Consumer.Group.Rebalance.Timeout, 2*o.Timeout+o.outageDelay())
	require.True(t, c.Net.TLS.Enable)
	require.True(t, c.Net.SASL.Enable)
}

func TestAMQPReadsEveryDelivery(t *testing.T) {
	t.Parallel()
	_, err := lenientMarshaler{}.Unmarshal(amqp091.Delivery{})
	require.ErrorIs(t, err, errNoDelivery)
	for _, d := range []amqp091.Delivery{
		{MessageId: "evt_1"},
		{MessageId: "other", Headers: amqp091.Table{amqp.DefaultMessageUUIDHeaderKey: "evt_1"}},
	} {
		d.Acknowledger, d.Body = &amqp091.Channel{}, []byte(good)
		if d.Headers == nil {
			d.Headers = amqp091.Table{}
		}
		d.Headers["x-delivery-count"], d.Headers["trace"], d.Headers["x-death"] = int64(3), "t", []any{}
		m, err := lenientMarshaler{}.Unmarshal(d)
		require.NoError(t, err)
		p, err := decode(m, "c")
		require.NoError(t, err)
		require.Equal(t, "evt_1", p.MessageID)
		require.Equal(t, message.Metadata{"x-delivery-count": "3", "trace": "t"}, m.Metadata)
	}
	// Clients write a whole number in the smallest type that holds it, or always
	// in the same: the message is the same one.
	for _, id := range []any{"120", int8(120), int16(120), int32(120), int64(120), byte(120), uint16(120), uint32(120)} {
		m, err := lenientMarshaler{}.Unmarshal(amqp091.Delivery{
			Acknowledger: &amqp091.Channel{}, MessageId: "other", Headers: amqp091.Table{MessageIDKey: id},
		})
		require.NoError(t, err)
		require.Equal(t, "120", messageID(m), "%T", id)
	}
	o := BrokerOptions{Group: "g", AMQP: &AMQPOptions{URL: "amqp://x", QueueArguments: map[string]any{"x-queue-type": "quorum"}}}
	c := o.amqp()
	require.NoError(t, c.ValidateSubscriber())
	require.NoError(t, c.ValidatePublisher())
	require.Equal(t, "payments_g", c.Queue.GenerateName("payments"))
	require.Equal(t, amqp091.Table{"x-queue-type": "quorum"}, c.Queue.Arguments)
}

func TestLazyOpensOnceAndStaysClosed(t *testing.T) {
	t.Parallel()
	opened, away := 0, true
	inner := &closing{}
	l := newLazyPublisher(func() (message.Publisher, error) {
		if opened++; away {
			return nil, errors.New("away")
		}
		return inner, nil
	})
	require.EqualError(t, l.Publish("t"), "away")
	away = false
	require.NoError(t, l.Publish("t"))
	require.NoError(t, l.Publish("t"))
	require.Equal(t, 2, opened)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	require.Equal(t, 1, inner.closed)
	require.Error(t, l.Publish("t"))
	require.NoError(t, newLazyPublisher(nil).Close())
}

type closing struct{ closed int }

func (*closing) Publish(string, ...*message.Message) error { return nil }

func (c *closing) Close() error {
	c.closed++
	return nil
}
