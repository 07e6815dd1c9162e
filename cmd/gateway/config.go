package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
)

func configCommand(env environment) *cobra.Command {
	var origin, markdown, running bool
	printer := withConfig(&cobra.Command{
		Use:   "print",
		Short: "Print the settings and where they came from, secrets masked",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if markdown {
				return configs.WriteReference(env.stdout)
			}
			loaded, err := loadConfig(c, env)
			if err != nil {
				return err
			}
			if running {
				return printRunning(c.Context(), env.stdout, &loaded.Config, origin)
			}
			return loaded.Print(env.stdout, origin)
		},
	}, false)
	printer.Flags().BoolVar(&origin, "origin", false, "say where each value came from")
	printer.Flags().BoolVar(&markdown, "markdown", false, "print the table of all settings and their defaults instead")
	printer.Flags().BoolVar(&running, "running", false, "ask the running gateway's admin listener what is in force there")
	printer.MarkFlagsMutuallyExclusive("running", "markdown")
	checker := &cobra.Command{
		Use:   "check FILE",
		Short: "Say whether a gateway would start with FILE and this environment",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			loaded, err := configs.Load(configs.Sources{File: args[0], Environ: env.vars})
			if err != nil {
				return err
			}
			if _, err := openCertificates(&loaded.Config, slog.New(slog.DiscardHandler)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.stderr, "%s is valid\n", args[0])
			return err
		},
	}
	return group("config", "Check and print the configuration", checker, printer)
}
