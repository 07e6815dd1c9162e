package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
)

// Whose health can be asked.
const (
	ofGateway  = "gateway"
	ofConsumer = "consumer"
	ofEither   = "either"
)

func healthcheckCommand(env environment) *cobra.Command {
	var of string
	known := []string{ofGateway, ofConsumer, ofEither}
	c := withConfig(&cobra.Command{
		Use:   "healthcheck",
		Short: "Ask the process with this configuration whether it is ready; exit code 1 when it is not",
		Long: `Ask /readyz of the process with this configuration: of a gateway at http.listen,
of "oncegate consume" at admin.listen.

A configuration that would be refused is asked with all the same: the process
keeps the settings that it has. Only what stands in a file that is no YAML at all
is not known then; http.listen and the certificate may be named by flags.

"--of either" asks at http.listen and, where nobody listens there, at
admin.listen. It is for a place where only one of the two runs, such as a
container: elsewhere it may take one for the other.`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains(known, of) {
				return fmt.Errorf("--of must be %s, not %q", strings.Join(known, ", "), of)
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			sources, err := configSources(c, env)
			if err != nil {
				return err
			}
			sources.NoGateway, sources.Unchecked = true, true
			loaded, err := configs.Load(sources)
			if err != nil {
				return err
			}
			err = askReadiness(c.Context(), env.stdout, &loaded.Config, of)
			if err == nil {
				return nil
			}
			sources.Unchecked = false
			if _, refused := configs.Load(sources); refused != nil {
				return fmt.Errorf("%w; asked with a configuration that would be refused: %w", err, refused)
			}
			return err
		},
	}, false)
	c.Flags().StringVar(&of, "of", ofGateway, "whose health: "+strings.Join(known, ", "))
	return c
}

func askReadiness(ctx context.Context, w io.Writer, cfg *configs.Config, of string) error {
	if of == ofConsumer {
		return askConsumer(ctx, w, cfg)
	}
	address, err := reachable("http.listen", cfg.HTTP.Listen)
	if err != nil {
		return err
	}
	err = probeHealth(ctx, w, cfg, address, "/readyz")
	if of == ofEither && errors.Is(err, syscall.ECONNREFUSED) {
		if other := askConsumer(ctx, w, cfg); other != nil {
			return fmt.Errorf("neither a gateway (%w) nor a consumer (%w)", err, other)
		}
		return nil
	}
	return err
}

func askConsumer(ctx context.Context, w io.Writer, cfg *configs.Config) error {
	if cfg.Admin.Listen == "" {
		return errors.New("admin.listen is empty: a consumer without it tells nobody how it is")
	}
	address, err := reachable("admin.listen", cfg.Admin.Listen)
	if err != nil {
		return err
	}
	return probeHealth(ctx, w, cfg, address, "/readyz")
}
