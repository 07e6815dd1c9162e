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
)

// openKafka uses Watermill's module. Kafka keeps no count of deliveries: those
// of the running process decide when a message is parked, and until then it
// holds up its partition.
func openKafka(o BrokerOptions) (message.Subscriber, message.Publisher, error) {
	if len(o.Kafka.Brokers) == 0 {
		return nil, nil, errors.New("consumer: kafka: a broker is required")
	}
	settings := o.Kafka.sarama()
	if err := settings.Validate(); err != nil {
		return nil, nil, fmt.Errorf("consumer: kafka: %w", err)
	}
	subscriber, err := kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers:               o.Kafka.Brokers,
		Unmarshaler:           kafka.DefaultMarshaler{},
		OverwriteSaramaConfig: settings,
		ConsumerGroup:         o.Group,
		NackResendSleep:       kafka.NoSleep, // the consumer has waited already
	}, adapted(o.Logger))
	if err != nil {
		return nil, nil, fmt.Errorf("consumer: kafka: %w", err)
	}
	return subscriber, newLazyPublisher(func() (message.Publisher, error) {
		return kafka.NewPublisher(kafka.PublisherConfig{
			Brokers:               o.Kafka.Brokers,
			Marshaler:             kafka.DefaultMarshaler{},
			OverwriteSaramaConfig: settings,
		}, adapted(o.Logger))
	}), nil
}

func (k *KafkaOptions) sarama() *sarama.Config {
	c := sarama.NewConfig()
	c.ClientID = "oncegate"
	c.Version = sarama.V2_1_0_0
	c.Net.DialTimeout, c.Net.ReadTimeout, c.Net.WriteTimeout = kafkaDialTimeout, kafkaTimeout, kafkaTimeout
	c.Net.TLS.Enable, c.Net.TLS.Config = k.TLS != nil, k.TLS
	if k.Username != "" {
		c.Net.SASL.Enable, c.Net.SASL.Mechanism = true, sarama.SASLTypePlaintext
		c.Net.SASL.User, c.Net.SASL.Password = k.Username, k.Password
	}
	c.Consumer.Return.Errors = true
	// A new group begins with the oldest message: what had been dealt with is
	// recognised, what was skipped would be lost.
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	// A parked message is acknowledged in its topic once this has succeeded.
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Return.Successes = true
	c.Producer.Timeout = kafkaTimeout
	return c
}
