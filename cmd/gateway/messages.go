package main

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/consumer"
	"github.com/oncegate/oncegate/order"
)

// openMessages opens the consumer, if a broker is configured; nil otherwise.
// readMessages has it begin.
func (a *App) openMessages(cfg *configs.Config, lifecycle order.Lifecycle, registry prometheus.Registerer) (*consumer.Consumer, error) {
	m := &cfg.Messages
	if m.Broker == "" {
		return nil, nil
	}
	subscriber, publisher, err := consumer.Open(brokerOptions(a, m))
	if err != nil {
		return nil, err
	}
	a.keep("publisher of parked messages", func(context.Context) error { return publisher.Close() })
	c, err := consumer.New(consumer.Options{
		Subscriber: subscriber, Topic: m.Topic, Name: m.Name, Lifecycle: lifecycle,
		Parker:  &consumer.TopicParker{Publisher: publisher, Topic: m.ParkedTopic, Now: time.Now},
		Workers: m.Workers, MaxDeliveries: m.MaxDeliveries, Logger: a.log, Registerer: registry,
	})
	if err != nil {
		return nil, errors.Join(err, subscriber.Close())
	}
	a.keep("subscriber of payment events", func(ctx context.Context) error { return within(ctx, c.Close) })
	return c, nil
}

// readMessages reads until the App closes, which waits for the messages in hand.
func (a *App) readMessages(c *consumer.Consumer) {
	a.background("consumer", func(ctx context.Context) {
		if err := c.Run(ctx); err != nil && ctx.Err() == nil {
			a.log.ErrorContext(ctx, "payment events are no longer read", "error", err)
		}
	})
}

func brokerOptions(a *App, m *configs.Messages) consumer.BrokerOptions {
	o := consumer.BrokerOptions{Kind: consumer.Kind(m.Broker), Group: m.Group, Logger: a.log}
	var encrypted *tls.Config
	if m.TLS {
		encrypted = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	switch o.Kind {
	case consumer.Redis:
		o.Redis = &consumer.RedisOptions{Client: &redis.UniversalOptions{
			Addrs: m.Addrs, Username: m.Username, Password: m.Password.Reveal(), TLSConfig: encrypted,
		}}
	case consumer.Kafka:
		o.Kafka = &consumer.KafkaOptions{Brokers: m.Addrs, TLS: encrypted, Username: m.Username, Password: m.Password.Reveal()}
	case consumer.AMQP:
		o.AMQP = &consumer.AMQPOptions{URL: m.Password.Reveal(), TLS: encrypted}
	}
	return o
}
