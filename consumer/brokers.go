package consumer

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
)

// Kind names a kind of broker.
type Kind string

// The kinds of brokers.
const (
	Redis Kind = "redis"
	Kafka Kind = "kafka"
	AMQP  Kind = "amqp"
)

// BrokerOptions say which broker to use. The part of its kind must be set, and
// no other.
type BrokerOptions struct {
	Kind Kind
	// Group is shared by all processes that divide the messages of a topic
	// among them. Required.
	Group string
	Redis *RedisOptions
	Kafka *KafkaOptions
	AMQP  *AMQPOptions

	Logger *slog.Logger // required
}

// Open returns a subscriber for the group, and a publisher for what is parked.
// Neither needs the broker to be there yet: a consumer waits for it. Both are
// the caller's to close; a [Consumer] closes its subscriber.
func Open(o BrokerOptions) (message.Subscriber, message.Publisher, error) {
	switch {
	case o.Group == "":
		return nil, nil, errors.New("consumer: a group is required")
	case o.Logger == nil:
		return nil, nil, errors.New("consumer: a logger is required")
	case (o.Redis != nil) != (o.Kind == Redis), (o.Kafka != nil) != (o.Kind == Kafka), (o.AMQP != nil) != (o.Kind == AMQP):
		return nil, nil, fmt.Errorf("consumer: a broker of kind %q takes the options of its kind, and no others", o.Kind)
	}
	switch o.Kind {
	case Redis:
		return openRedis(o)
	case Kafka:
		return openKafka(o)
	case AMQP:
		return openAMQP(o)
	default:
		return nil, nil, fmt.Errorf("consumer: the broker must be redis, kafka or amqp, not %q", o.Kind)
	}
}

// adapted is the logger for Watermill's modules. They tell of every connection
// and subscription at the level of information.
func adapted(l *slog.Logger) watermill.LoggerAdapter {
	return watermill.NewSlogLoggerWithLevelMapping(l, map[slog.Level]slog.Level{slog.LevelInfo: slog.LevelDebug})
}
