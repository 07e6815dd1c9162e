package consumer

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
)

// KafkaOptions are those of Kafka, 2.1 or later.
type KafkaOptions struct {
	Brokers []string // host:port each; required
	// TLS is how to encrypt. Nil: not at all.
	TLS *tls.Config
	// Username and Password log in with SASL/PLAIN. Empty: no log-in.
	Username, Password string
}

const (
	kafkaDialTimeout = 5 * time.Second
	kafkaTimeout     = 10 * time.Second
	// kafkaHandover is how long a member may take to give up its partitions, with
	// a message in hand. Who joins meanwhile is answered after that, so its reads
	// must be allowed to take longer: or it gives up, and the group begins again.
	kafkaHandover = 40 * time.Second
)

// openKafka uses Watermill's publisher. Kafka keeps no count of deliveries: those
// to one member decide when a message is parked, and until then it holds up its
// partition.
func openKafka(o BrokerOptions) (message.Subscriber, message.Publisher, error) {
	if len(o.Kafka.Brokers) == 0 {
		return nil, nil, errors.New("consumer: kafka: a broker is required")
	}
	settings := o.Kafka.sarama()
	if err := settings.Validate(); err != nil {
		return nil, nil, fmt.Errorf("consumer: kafka: %w", err)
	}
	publishing, cord := *settings, &wires{dialing: kafkaDialTimeout}
	publishing.Net.ReadTimeout = kafkaTimeout
	publishing.Net.Proxy.Enable, publishing.Net.Proxy.Dialer = true, cord
	subscriber := &kafkaSubscriber{
		subscriptions: subscriptions{closing: make(chan struct{})},
		brokers:       o.Kafka.Brokers, group: o.Group, settings: settings, timeout: kafkaTimeout, logger: o.Logger,
	}
	publisher := &boundedPublisher{wires: cord}
	publisher.inner = newLazyPublisher(func() (message.Publisher, error) {
		return kafka.NewPublisher(kafka.PublisherConfig{
			Brokers:               o.Kafka.Brokers,
			Marshaler:             kafka.DefaultMarshaler{},
			OverwriteSaramaConfig: &publishing,
		}, adapted(o.Logger))
	})
	return subscriber, publisher, nil
}

func (k *KafkaOptions) sarama() *sarama.Config {
	c := sarama.NewConfig()
	c.ClientID = "oncegate"
	c.Version = sarama.V2_1_0_0
	c.Net.DialTimeout, c.Net.ReadTimeout, c.Net.WriteTimeout = kafkaDialTimeout, kafkaHandover+kafkaTimeout, kafkaTimeout
	c.Net.TLS.Enable, c.Net.TLS.Config = k.TLS != nil, k.TLS
	if k.Username != "" {
		c.Net.SASL.Enable, c.Net.SASL.Mechanism = true, sarama.SASLTypePlaintext
		c.Net.SASL.User, c.Net.SASL.Password = k.Username, k.Password
	}
	c.Consumer.Return.Errors = true
	c.Consumer.Group.Rebalance.Timeout = kafkaHandover
	// What its publisher took back was never an event.
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	// A new group begins with the oldest message: what had been dealt with is
	// recognised, what was skipped would be lost.
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	// The broker knows how large a message may be: what it has delivered must not
	// be too large here to be parked.
	c.Producer.MaxMessageBytes = int(sarama.MaxRequestSize) - 1
	// A parked message is acknowledged in its topic once this has succeeded.
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Return.Successes = true
	c.Producer.Timeout = kafkaTimeout
	return c
}
