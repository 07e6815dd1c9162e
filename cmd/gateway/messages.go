package main

import (
	"context"
	"crypto/tls"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/consumer"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/store"
)

// consumeCommand reads payment events without taking orders.
func consumeCommand(env environment) *cobra.Command {
	return withConfig(&cobra.Command{
		Use:   "consume",
		Short: "Read payment events from the broker until a signal ends it",
		Long:  `Read payment events from messages.broker and apply them, without taking orders. "oncegate serve" does the same beside its other work.`,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := loadConfig(c, env)
			if err != nil {
				return err
			}
			if loaded.Config.Messages.Broker == "" {
				return errors.New("messages.broker is not set: there is nothing to read")
			}
			log, err := newLogger(env.stderr, loaded.Config.Log)
			if err != nil {
				return err
			}
			return withStore(c, env, loaded, func(ctx context.Context, s *store.Store) error {
				a := &App{log: log, grace: loaded.Config.ShutdownGrace}
				if err := a.openMessages(&loaded.Config, s, prometheus.NewRegistry()); err != nil {
					return err
				}
				log.InfoContext(ctx, "reading payment events", "broker", loaded.Config.Messages.Broker, "topic", loaded.Config.Messages.Topic)
				<-ctx.Done()
				return a.Close()
			})
		},
	}, false)
}

// openMessages starts the consumer, if a broker is configured.
func (a *App) openMessages(cfg *configs.Config, lifecycle order.Lifecycle, registry prometheus.Registerer) error {
	m := &cfg.Messages
	if m.Broker == "" {
		return nil
	}
	subscriber, publisher, err := consumer.Open(brokerOptions(a, m))
	if err != nil {
		return err
	}
	a.keep("publisher of parked messages", func(context.Context) error { return publisher.Close() })
	c, err := consumer.New(consumer.Options{
		Subscriber: subscriber, Topic: m.Topic, Name: m.Name, Lifecycle: lifecycle,
		Parker:  &consumer.TopicParker{Publisher: publisher, Topic: m.ParkedTopic},
		Workers: m.Workers, MaxDeliveries: m.MaxDeliveries, Logger: a.log, Registerer: registry,
	})
	if err != nil {
		return errors.Join(err, subscriber.Close())
	}
	a.background("consumer", func(ctx context.Context) {
		if err := c.Run(ctx); err != nil && ctx.Err() == nil {
			a.log.ErrorContext(ctx, "payment events are no longer read", "error", err)
		}
	})
	return nil
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
