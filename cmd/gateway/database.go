package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/store"
)

// findDatabase fails where the embedded database was never made: opening it would
// make an empty one, in what may be the wrong directory.
func findDatabase(c *configs.Config) error {
	if !c.EmbeddedDatabase() {
		return nil
	}
	_, err := os.Stat(databaseFile(c))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no database at %s: is data_dir right? 'oncegate serve' or 'oncegate migrate up' makes one", databaseFile(c))
	}
	return err
}

// withStore runs a command's work on the configured database.
func withStore(c *cobra.Command, env environment, loaded *configs.Loaded, work func(ctx context.Context, s *store.Store) error) (err error) {
	if err := findDatabase(&loaded.Config); err != nil {
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
