package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
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
on the same machine it needs an address of its own.

SIGINT and SIGTERM end it once the messages in hand are dealt with. SIGHUP
changes nothing: the configuration is read at the start only.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			// Whoever sends it means a gateway that shall read its configuration again;
			// without a handler it would end this process with messages in hand.
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			loaded, err := loadWithoutGateway(c, env)
			if err != nil {
				return err
			}
			cfg := &loaded.Config
			if cfg.Messages.Broker == "" {
				return errors.New("messages.broker is not set: there is nothing to read")
			}
			log, out, err := newRelayedLogger(env.stderr, cfg.Log, new(slog.LevelVar))
			if err != nil {
				return err
			}
			defer func() { err = out.endWith(err) }()
			a := &App{log: log, lost: out.lost.Load, grace: cfg.ShutdownGrace}
			if err := a.openConsumer(c.Context(), cfg); err != nil {
				return errors.Join(err, a.Close())
			}
			log.InfoContext(c.Context(), "reading payment events", "broker", cfg.Messages.Broker, "topic", cfg.Messages.Topic, "admin", a.consumerAddr())
			return a.runConsumer(c.Context(), hangup)
		},
	}, false)
}

// openConsumer opens what reads payment events, and nothing that takes orders.
func (a *App) openConsumer(ctx context.Context, cfg *configs.Config) error {
	if err := findDatabase(cfg); err != nil {
		return err
	}
	registry, err := newRegistry(a.lost)
	if err != nil {
		return err
	}
	o := storeOptions(cfg)
	renderer := gateway.NewRenderer(cfg.HTTP.ProblemBase)
	o.Logger, o.Renderer, o.Registerer = a.log, renderer, registry
	ledger, err := store.Open(ctx, o)
	if err != nil {
		return err
	}
	a.keep("ledger", ledger.Close)
	events, err := a.openMessages(cfg, ledger, registry)
	if err != nil {
		return err
	}
	health := a.consumerHealth(ledger, events)
	if err := registerHealth(registry, health); err != nil {
		return err
	}
	// Opened before anything is read, and so closed after the last message in hand
	// is dealt with: until then it tells that the consumer stops.
	if cfg.Admin.Listen != "" {
		if err := a.openConsumerAdmin(ctx, cfg, registry, renderer, health); err != nil {
			return err
		}
	}
	a.readMessages(events)
	a.keep("readiness", func(context.Context) error {
		health.Drain()
		return nil
	})
	return nil
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
	return a.openAdmin(ctx, cfg, o)
}

// consumerAddr is where the admin listener of a consumer is, if it has one.
func (a *App) consumerAddr() string {
	if a.admin == nil {
		return "off"
	}
	return a.AdminAddr()
}

// runConsumer shows how it goes until ctx ends or the listener fails, and then
// closes the App. To a hangup it says that there is nothing to read again.
func (a *App) runConsumer(ctx context.Context, hangup <-chan os.Signal) error {
	ended := make(chan error, 1)
	var serving sync.WaitGroup
	if a.admin != nil {
		serving.Go(func() { ended <- a.admin.Serve() })
	}
	var err error
	for running := true; running; {
		select {
		case <-hangup:
			a.log.WarnContext(ctx, "SIGHUP changes nothing here: a consumer reads its configuration at its start; restart it to have it read again")
		case <-ctx.Done():
			a.log.InfoContext(ctx, "stopping", "grace_ms", a.grace.Milliseconds())
			running = false
		case err = <-ended:
			running = false
		}
	}
	err = errors.Join(err, a.Close())
	serving.Wait()
	return err
}
