package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/store"
)

// withStore runs a command's work on the configured database.
func withStore(c *cobra.Command, env environment, work func(ctx context.Context, s *store.Store) error) (err error) {
	loaded, err := loadConfig(c, env)
	if err != nil {
		return err
	}
	log, err := newLogger(env.stderr, loaded.Config.Log)
	if err != nil {
		return err
	}
	o := storeOptions(&loaded.Config)
	o.Logger, o.Renderer = log, gateway.NewRenderer(loaded.Config.HTTP.ProblemBase)
	s, err := store.Open(c.Context(), o)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), loaded.Config.ShutdownGrace)
		defer cancel()
		err = errors.Join(err, s.Close(ctx))
	}()
	return work(c.Context(), s)
}
