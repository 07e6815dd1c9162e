package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/store"
)

func compactCommand(env environment) *cobra.Command {
	o := store.CompactOptions{Pause: 20 * time.Millisecond}
	c := withConfig(&cobra.Command{
		Use:   "compact",
		Short: "Empty old answers and forget old refusals; orders and their keys stay",
		Long: `Empty the stored answers that are older than retention.responses, and remove
refusals of that age, in small transactions with pauses. Several at once share
the work. A later retry is answered from the order, never with a second one.`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if o.Pause < 0 {
				return errors.New("--pause must not be negative")
			}
			return atLeast("batch", o.Batch, 1)
		},
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := loadWithoutGateway(c, env)
			if err != nil {
				return err
			}
			return withStore(c, env, loaded, func(ctx context.Context, s *store.Store) error {
				// The gateways promise what was changed while they run.
				changed, err := s.Overrides(ctx)
				if err != nil {
					return err
				}
				in, _, err := loaded.Override(changed.Values)
				if err != nil {
					return fmt.Errorf("with what was changed over the admin API: %w", err)
				}
				o.OlderThan = in.Config.Retention.Responses
				o.Pause = max(o.Pause, 1) // there, 0 is the default
				done, err := s.Compact(ctx, o)
				if err != nil {
					return err
				}
				return json.NewEncoder(env.stdout).Encode(done)
			})
		},
	}, false)
	c.Flags().IntVar(&o.Batch, "batch", 500, "records of one transaction")
	c.Flags().Var((*duration)(&o.Pause), "pause", "between two transactions")
	return c
}
