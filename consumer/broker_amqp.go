package consumer

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

// AMQPOptions are those of AMQP 0.9.1, as RabbitMQ speaks it.
//
// A topic is a durable fanout exchange, and each group has a durable queue
// bound to it, TOPIC_GROUP.
type AMQPOptions struct {
	URL string      // amqp:// or amqps://; required
	TLS *tls.Config // nil: the default for amqps://
	// QueueArguments are for the declaration of queues. A quorum queue of
	// RabbitMQ 4 must have x-delivery-limit: -1, for it drops a message that
	// was given back too often, and an outage of the ledger gives them back.
	QueueArguments map[string]any
}

const (
	amqpDialTimeout = 5 * time.Second // and that of the handshake after it
	// amqpHeartbeat is how often the broker gives a sign of life. After three times
	// that without one it counts as lost, which frees whatever waits for it.
	amqpHeartbeat = 5 * time.Second
	// amqpTimeout bounds a subscription. A publication has the deadline of its
	// message.
	amqpTimeout = 10 * time.Second
	// amqpReconnectDelay bounds the wait between attempts to connect again.
	amqpReconnectDelay = 10 * time.Second
)

var errNoDelivery = errors.New("the channel is closed")

// openAMQP uses Watermill's module. The deliveries of the running process
// decide when a message is parked.
func openAMQP(o BrokerOptions) (message.Subscriber, message.Publisher, error) {
	if _, err := amqp091.ParseURI(o.AMQP.URL); err != nil {
		return nil, nil, errors.New("consumer: amqp: the URL cannot be read") // the parser's error quotes it, password and all
	}
	settings, publishing := o.amqp(), o.amqp()
	publishing.TopologyBuilder = &queueBuilder{}
	publishing.Publish.ConfirmDelivery = true
	subscriber := &boundedSubscriber{wires: amqpWires(&settings), limit: amqpTimeout}
	subscriber.inner = newLazySubscriber(func() (message.Subscriber, error) {
		return amqp.NewSubscriber(settings, adapted(o.Logger))
	})
	publisher := &boundedPublisher{wires: amqpWires(&publishing)}
	publisher.inner = newLazyPublisher(func() (message.Publisher, error) {
		return amqp.NewPublisher(publishing, adapted(o.Logger))
	})
	return subscriber, publisher, nil
}

// amqpWires are those of a client with these settings.
func amqpWires(c *amqp.Config) *wires {
	w := &wires{dialing: amqpDialTimeout}
	c.Connection.AmqpConfig.Dial = func(network, addr string) (net.Conn, error) {
		conn, err := w.Dial(network, addr)
		if err != nil {
			return nil, err
		}
		// Until the handshake is done, then the client's heartbeats take over.
		if err := conn.SetDeadline(time.Now().Add(amqpDialTimeout)); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}
	return w
}

func (o *BrokerOptions) amqp() amqp.Config {
	c := amqp.NewDurablePubSubConfig(o.AMQP.URL, amqp.GenerateQueueNameTopicNameWithSuffix(o.Group))
	c.Connection.AmqpConfig = &amqp091.Config{
		Heartbeat: amqpHeartbeat, Locale: "en_US", TLSClientConfig: o.AMQP.TLS.Clone(), // the client writes in it
	}
	c.Connection.Reconnect = amqp.DefaultReconnectConfig()
	c.Connection.Reconnect.BackoffMaxInterval = amqpReconnectDelay
	c.Marshaler = lenientMarshaler{}
	c.Queue.Arguments = amqp091.Table(o.AMQP.QueueArguments)
	return c
}

// queueBuilder declares a queue beside the exchange that is published to: an
// exchange without one throws away what it is given, and confirms it.
type queueBuilder struct{ amqp.DefaultTopologyBuilder }

// ExchangeDeclare implements [amqp.TopologyBuilder]. The exchange's name is the
// topic.
func (b *queueBuilder) ExchangeDeclare(channel *amqp091.Channel, exchange string, c amqp.Config) error {
	if err := b.BuildTopology(channel, amqp.BuildTopologyParams{
		Topic: exchange, ExchangeName: exchange, QueueName: c.Queue.GenerateName(exchange),
	}, c, watermill.NopLogger{}); err != nil {
		return fmt.Errorf("declare %s with its queue: %w", exchange, err)
	}
	return nil
}

// lenientMarshaler reads every delivery: Watermill's refuses headers that are
// not texts, as brokers and other clients add them, and would give such a
// message back for ever.
type lenientMarshaler struct{ amqp.DefaultMarshaler }

// Unmarshal implements [amqp.Marshaler]. The property message-id stands in for
// the header that Watermill's publishers set.
func (lenientMarshaler) Unmarshal(d amqp091.Delivery) (*message.Message, error) {
	if d.Acknowledger == nil {
		return nil, errNoDelivery // what a closed channel yields is no message
	}
	id, _ := d.Headers[amqp.DefaultMessageUUIDHeaderKey].(string)
	if id == "" {
		id = d.MessageId
	}
	m := message.NewMessage(id, d.Body)
	for key, value := range d.Headers {
		if key == amqp.DefaultMessageUUIDHeaderKey {
			continue
		}
		switch v := value.(type) {
		case string:
			m.Metadata.Set(key, v)
		case int8, int16, int32, int64, uint8, uint16, uint32: // a client takes the one that fits
			m.Metadata.Set(key, fmt.Sprint(v))
		}
	}
	return m, nil
}
