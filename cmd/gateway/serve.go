package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/store"
)

func serveCommand(env environment) *cobra.Command {
	var migrate bool
	c := withConfig(&cobra.Command{
		Use:   "serve",
		Short: "Take orders until a signal ends it",
		Long: `Take orders until SIGINT or SIGTERM ends it. SIGHUP, and a change of the
configuration's file, have it read again.

Without settings it needs nothing else: SQLite in ./data, Redis in the process.
With mysql.dsn it needs the schema of "oncegate migrate up".`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return serve(c, env, migrate) },
	}, true)
	c.Flags().BoolVar(&migrate, "migrate", false, "bring the schema up to date first (always done for the embedded database)")
	return c
}

func serve(c *cobra.Command, env environment, migrate bool) (err error) {
	// From here on it asks for the configuration to be read again; before, and
	// without a handler, it would end the process.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	sources, err := configSources(c, env)
	if err != nil {
		return err
	}
	loaded, err := configs.Load(sources)
	if err != nil {
		return err
	}
	cfg := loaded.Config
	level := new(slog.LevelVar)
	log, out, err := newRelayedLogger(env.stderr, cfg.Log, level)
	if err != nil {
		return err
	}
	defer func() { err = out.endWith(err) }()
	ctx := c.Context()
	if migrate && !cfg.EmbeddedDatabase() {
		o := storeOptions(&cfg)
		o.Logger = log
		if err := store.Migrate(ctx, o); err != nil {
			return err
		}
	}
	easeCollector(env)
	manager := supervisorOf(env)
	app, err := NewLive(ctx, Live{
		Loaded: loaded, Sources: &sources, Hangup: hangup, Reloading: manager.reloading(log), Judged: manager.judged(log), Level: level, LinesLost: out.lost.Load,
	}, log)
	if err != nil {
		return err
	}
	if cfg.EmbeddedDatabase() {
		if err := welcome(out, &cfg, app); err != nil {
			log.WarnContext(ctx, "no token for a first order", "error", err)
		}
	}
	return app.supervised(ctx, manager, &cfg)
}

// welcome prints a command that makes a first order.
func welcome(w io.Writer, cfg *configs.Config, app *App) error {
	secret, err := signingSecret(cfg)
	if err != nil {
		return err
	}
	token, err := mint(cfg, secret, tokenRequest{user: "alice", scopes: []string{gateway.ScopeOrders}, ttl: 24 * time.Hour})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, `
oncegate takes orders at %[4]s://%[1]s (admin at %[4]s://%[2]s). Order in a browser
at %[4]s://%[1]s/demo, or paste this, twice:

curl -i %[4]s://%[1]s/api/orders -H 'Content-Type: application/json' -H 'Idempotency-Key: first-order' -d '{"sku":"potsticker","quantity":2,"amount":"39.80"}' -H 'Authorization: Bearer %[3]s'

`, app.Addr(), app.AdminAddr(), token, scheme(cfg))
	return err
}
