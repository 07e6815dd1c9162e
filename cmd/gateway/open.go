package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncegate/oncegate/api"
	"github.com/oncegate/oncegate/cache"
	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/store"
)

// open opens the parts from the inside out: what is used before its users.
func (a *App) open(ctx context.Context, cfg *configs.Config) error {
	registry, err := newRegistry(a.lost)
	if err != nil {
		return err
	}
	metrics, err := gateway.NewMetrics(registry)
	if err != nil {
		return err
	}
	if a.tracer, err = a.openTracing(ctx, cfg); err != nil {
		return err
	}
	auth, err := a.openAuth(ctx, cfg)
	if err != nil {
		return err
	}
	macKey := receiptKey(cfg)
	if err := a.newInsight(); err != nil {
		return err
	}
	filter, err := a.openFilter(ctx, cfg, macKey, registry)
	if err != nil {
		return err
	}
	renderer := gateway.NewRenderer(cfg.HTTP.ProblemBase)
	ledger, err := a.openStore(ctx, cfg, renderer, registry)
	if err != nil {
		return err
	}
	if err := a.settings.register(registry); err != nil {
		return err
	}
	if err := a.followSettings(ctx, ledger); err != nil {
		return err
	}
	a.openBackground(cfg, ledger)
	events, err := a.openMessages(cfg, ledger, registry)
	if err != nil {
		return err
	}
	if events != nil {
		a.readMessages(events)
	}
	webhooks, err := openWebhooks(cfg)
	if err != nil {
		return err
	}
	certs, err := openCertificates(cfg, a.log)
	if err != nil {
		return err
	}
	intake := order.NewIntake(order.Options{
		Filter: filter, Ledger: ledger, Deferrals: ledger, Observer: witness{observers{metrics, a.insight}, filter}, Now: time.Now,
		Tuning: a.settings.orderTuning,
	})
	health := a.health(ledger, filter)
	if err := registerHealth(registry, health); err != nil {
		return err
	}
	a.openInsight(filter, health)
	a.background("watch of health", func(ctx context.Context) { watchHealth(ctx, health, a.moved) })
	if err := a.openAdmin(ctx, cfg, gateway.AdminOptions{
		Desk:    gateway.Desk{Accounts: ledger, Shipper: ledger, Peeker: filter, Finder: ledger},
		Insight: a.insight, Settings: a.settings, LogHashKey: logHashKey(macKey),
		Gatherer: registry, Renderer: renderer, Auth: auth, Certificates: certs,
	}); err != nil {
		return err
	}
	return a.openPublic(ctx, cfg, gateway.Options{
		Demo:      demoPage(cfg),
		Submitter: intake, Book: ledger, Lifecycle: ledger, Webhooks: webhooks, Auth: auth, Renderer: renderer, Metrics: metrics,
		ForgetRejections: !cfg.Idempotency.RememberRejections,
		Health:           health, Conflicts: a.insight.Conflicted, LogHashKey: logHashKey(macKey), Certificates: certs,
	})
}

// openStore opens the database. The embedded one is made and brought up to date
// on the way; a server's schema is the operator's to change.
func (a *App) openStore(ctx context.Context, cfg *configs.Config, renderer order.Renderer, registry prometheus.Registerer) (*store.Store, error) {
	o := storeOptions(cfg)
	o.Renderer, o.Registerer, o.Logger, o.Tracer = renderer, registry, a.log, a.tracer
	if balance, ok := cfg.Provision(); ok {
		amount, err := order.ParseAmount(balance)
		if err != nil {
			return nil, fmt.Errorf("users.provision_balance: %w", err)
		}
		o.ProvisionBalance = &amount
	}
	if cfg.EmbeddedDatabase() {
		if err := ensureDir(cfg.DataDir); err != nil {
			return nil, err
		}
		if err := store.Migrate(ctx, o); err != nil {
			return nil, err
		}
		a.log.WarnContext(ctx, "the embedded database is for trying and for tests: one file, one writer, one machine", "file", databaseFile(cfg))
	}
	s, err := store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	a.keep("ledger", s.Close)
	engine, version := s.Engine()
	a.log.InfoContext(ctx, "the database is open", "engine", engine, "version", version)
	return s, nil
}

func (a *App) openAdmin(ctx context.Context, cfg *configs.Config, o gateway.AdminOptions) (err error) {
	o.Addr = cfg.Admin.Listen
	o.AllowLoopback = cfg.Admin.AllowLoopback
	o.OpenMetrics = cfg.Admin.OpenMetrics
	o.AllowedHosts = cfg.Admin.AllowedHosts
	o.Logger, o.Now = a.log, time.Now
	if a.admin, err = gateway.NewAdmin(o); err != nil {
		return err
	}
	if err := a.admin.Listen(ctx); err != nil {
		return fmt.Errorf("admin.listen: %w", err)
	}
	a.keep("admin listener", a.admin.Shutdown)
	return nil
}

func (a *App) openPublic(ctx context.Context, cfg *configs.Config, o gateway.Options) (err error) {
	o.Addr = cfg.HTTP.Listen
	o.DrainDelay = cfg.HTTP.DrainDelay
	o.Timeouts = gateway.Timeouts{
		ReadHeader: cfg.HTTP.ReadHeaderTimeout,
		Read:       cfg.HTTP.ReadTimeout,
		Write:      cfg.HTTP.WriteTimeout,
		Idle:       cfg.HTTP.IdleTimeout,
	}
	o.Tuning = a.settings.httpTuning
	o.Spec, o.Logger, o.Now, o.Tracer = api.Spec(), a.log, time.Now, a.tracer
	if a.public, err = gateway.New(o); err != nil {
		return err
	}
	if err := a.public.Listen(ctx); err != nil {
		return fmt.Errorf("http.listen: %w", err)
	}
	a.keep("public listener", a.public.Shutdown)
	return nil
}

// health follows the database, without which no answer is right, and Redis,
// without which answers are slower.
func (a *App) health(s *store.Store, f *cache.Filter) *gateway.Health {
	return gateway.NewHealth(gateway.HealthOptions{
		Checks: []gateway.Check{
			{Name: "mysql", Critical: true, Func: func(context.Context) error { return s.Health() }},
			{Name: "redis", Func: f.Health},
		},
		Now:    time.Now,
		Logger: a.log,
	})
}

// openWebhooks verifies payment callbacks; nil without a secret.
func openWebhooks(cfg *configs.Config) (*gateway.Webhooks, error) {
	if !cfg.Webhooks.Secret.IsSet() {
		return nil, nil
	}
	secrets := []string{cfg.Webhooks.Secret.Reveal()}
	if cfg.Webhooks.PreviousSecret.IsSet() {
		secrets = append(secrets, cfg.Webhooks.PreviousSecret.Reveal())
	}
	return gateway.NewWebhooks(secrets)
}

func databaseFile(cfg *configs.Config) string { return filepath.Join(cfg.DataDir, "oncegate.db") }

func ensureDir(path string) error {
	if err := os.MkdirAll(path, privateDir); err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	return nil
}
