package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/consumer"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/store"
)

// consumeCommand reads payment events without taking orders.
func consumeCommand(env environment) *cobra.Command {
	return withConfig(&cobra.Command{
		Use:   "consume",
		Short: "Read payment events from the broker until a signal ends it",
		Long: `Read payment events from messages.broker and apply them, without taking orders.
"oncegate serve" does the same beside its other work.

Metrics, profiles and health are at admin.listen, under the guards of a
gateway's admin listener; an empty admin.listen switches it off. Beside a gateway
on the same machine it needs an address of its own.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := loadWithoutGateway(c, env)
			if err != nil {
				return err
			}
			cfg := &loaded.Config
			if cfg.Messages.Broker == "" {
				return errors.New("messages.broker is not set: there is nothing to read")
			}
			log, err := newLogger(env.stderr, cfg.Log)
			if err != nil {
				return err
			}
			a := &App{log: log, grace: cfg.ShutdownGrace}
			if err := a.openConsumer(c.Context(), cfg); err != nil {
				return errors.Join(err, a.Close())
			}
			log.InfoContext(c.Context(), "reading payment events", "broker", cfg.Messages.Broker, "topic", cfg.Messages.Topic, "admin", a.consumerAddr())
			return a.runConsumer(c.Context())
		},
	}, false)
}

// openConsumer opens what reads payment events, and nothing that takes orders.
func (a *App) openConsumer(ctx context.Context, cfg *configs.Config) error {
	if err := findDatabase(cfg); err != nil {
		return err
	}
	registry, err := newRegistry()
	if err != nil {
		return err
	}
	o := storeOptions(cfg)
	renderer := newRenderer(cfg)
	o.Logger, o.Renderer, o.Registerer = a.log, renderer, registry
	ledger, err := store.Open(ctx, o)
	if err != nil {
		return err
	}
	a.keep("ledger", ledger.Close)
	events, err := a.openMessages(cfg, ledger, registry)
	if err != nil || cfg.Admin.Listen == "" {
		return err
	}
	return a.openConsumerAdmin(ctx, cfg, registry, renderer, a.consumerHealth(ledger, events))
}

// consumerHealth follows what a consumer cannot do without.
func (a *App) consumerHealth(ledger *store.Store, events *consumer.Consumer) *gateway.Health {
	return gateway.NewHealth(gateway.HealthOptions{
		Checks: []gateway.Check{
			{Name: "mysql", Critical: true, Func: func(context.Context) error { return ledger.Health() }},
			{Name: "messages", Critical: true, Func: func(context.Context) error { return events.Health() }},
		},
		Now:    time.Now,
		Logger: a.log,
	})
}

// openConsumerAdmin shows metrics, profiles and health. Tokens are believed where
// the configuration has what verifies them.
func (a *App) openConsumerAdmin(
	ctx context.Context, cfg *configs.Config, registry *prometheus.Registry, renderer *gateway.Renderer, health *gateway.Health,
) error {
	certs, err := openCertificates(cfg, a.log)
	if err != nil {
		return err
	}
	o := gateway.AdminOptions{Health: health, Gatherer: registry, Renderer: renderer, Certificates: certs}
	if cfg.VerifiesTokens() {
		if o.Auth, err = a.openAuth(ctx, cfg); err != nil {
			return err
		}
	}
	if err := a.openAdmin(ctx, cfg, o); err != nil {
		return err
	}
	a.keep("readiness", func(context.Context) error {
		health.Drain()
		return nil
	})
	return nil
}

// consumerAddr is where the admin listener of a consumer is, if it has one.
func (a *App) consumerAddr() string {
	if a.admin == nil {
		return "off"
	}
	return a.AdminAddr()
}

// runConsumer shows how it goes until ctx ends or the listener fails, and then
// closes the App.
func (a *App) runConsumer(ctx context.Context) error {
	ended := make(chan error, 1)
	var serving sync.WaitGroup
	if a.admin != nil {
		serving.Go(func() { ended <- a.admin.Serve() })
	}
	var err error
	select {
	case <-ctx.Done():
		a.log.InfoContext(ctx, "stopping", "grace_ms", a.grace.Milliseconds())
	case err = <-ended:
	}
	err = errors.Join(err, a.Close())
	serving.Wait()
	return err
}
