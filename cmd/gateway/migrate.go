package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/store"
)

func migrateCommand(env environment) *cobra.Command {
	return group("migrate", "Bring the schema of the database up to date",
		withConfig(&cobra.Command{
			Use:   "up",
			Short: "Apply what is missing; several at once are safe",
			Args:  cobra.NoArgs,
			RunE:  func(c *cobra.Command, _ []string) error { return migrateUp(c, env) },
		}, false),
		withConfig(&cobra.Command{
			Use:   "status",
			Short: "List the steps; exit code 1 when one is missing",
			Args:  cobra.NoArgs,
			RunE:  func(c *cobra.Command, _ []string) error { return migrateStatus(c, env) },
		}, false),
	)
}

// migrationOptions loads the configuration, and has the embedded database looked
// after by prepare.
func migrationOptions(c *cobra.Command, env environment, prepare func(*configs.Config) error) (store.Options, error) {
	loaded, err := loadWithoutGateway(c, env)
	if err != nil {
		return store.Options{}, err
	}
	log, err := newLogger(env.stderr, loaded.Config.Log)
	if err != nil {
		return store.Options{}, err
	}
	o := storeOptions(&loaded.Config)
	o.Logger = log
	return o, prepare(&loaded.Config)
}

func migrateUp(c *cobra.Command, env environment) error {
	o, err := migrationOptions(c, env, makeDataDir)
	if err != nil {
		return err
	}
	if err := store.Migrate(c.Context(), o); err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.stderr, "the schema is up to date")
	return err
}

func migrateStatus(c *cobra.Command, env environment) error {
	o, err := migrationOptions(c, env, findDatabase)
	if err != nil {
		return err
	}
	steps, err := store.MigrationStatus(c.Context(), o)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VERSION\tNAME\tSTATE")
	missing := false
	for _, s := range steps {
		state := "applied"
		if !s.Applied {
			state, missing = "missing", true
		}
		fmt.Fprintf(table, "%d\t%s\t%s\n", s.Version, s.Name, state)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if missing {
		return errSilent
	}
	return nil
}

// makeDataDir makes the directory of the embedded database.
func makeDataDir(c *configs.Config) error {
	if !c.EmbeddedDatabase() {
		return nil
	}
	return ensureDir(c.DataDir)
}
