package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/store"
)

func serveCommand(env environment) *cobra.Command {
	var migrate bool
	c := withConfig(&cobra.Command{
		Use:   "serve",
		Short: "Take orders until a signal ends it",
		Long: `Take orders until SIGINT or SIGTERM ends it.

Without settings it needs nothing else: SQLite in ./data, Redis in the process.
With mysql.dsn it needs the schema of "oncegate migrate up".`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return serve(c, env, migrate) },
	}, true)
	c.Flags().BoolVar(&migrate, "migrate", false, "bring the schema up to date first (always done for the embedded database)")
	return c
}

func serve(c *cobra.Command, env environment, migrate bool) error {
	loaded, err := loadConfig(c, env)
	if err != nil {
		return err
	}
	cfg := loaded.Config
	log, err := newLogger(env.stderr, cfg.Log)
	if err != nil {
		return err
	}
	ctx := c.Context()
	if migrate && !cfg.EmbeddedDatabase() {
		o := storeOptions(&cfg)
		o.Logger = log
		if err := store.Migrate(ctx, o); err != nil {
			return err
		}
	}
	app, err := New(ctx, cfg, log)
	if err != nil {
		return err
	}
	if cfg.EmbeddedDatabase() {
		if err := welcome(ctx, env.stderr, &cfg, app); err != nil {
			log.WarnContext(ctx, "no token for a first order", "error", err)
		}
	}
	return app.Run(ctx)
}

// welcome prints a command that makes a first order.
func welcome(_ context.Context, w io.Writer, cfg *configs.Config, app *App) error {
	secret, err := signingSecret(cfg)
	if err != nil {
		return err
	}
	token, err := mint(cfg, secret, tokenRequest{user: "alice", scopes: []string{"orders"}, ttl: 24 * time.Hour})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, `
oncegate takes orders at http://%[1]s (admin at http://%[2]s). Paste this, twice:

curl -i http://%[1]s/api/orders -H 'Content-Type: application/json' -H 'Idempotency-Key: first-order' -d '{"sku":"potsticker","quantity":2,"amount":"39.80"}' -H 'Authorization: Bearer %[3]s'

`, app.Addr(), app.AdminAddr(), token)
	return err
}
