package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/store"
)

func auditCommand(env environment) *cobra.Command {
	var o store.AuditOptions
	var asJSON bool
	c := withConfig(&cobra.Command{
		Use:   "audit",
		Short: "Prove on the live database that nothing is doubled, lost or adrift",
		Long: `Look for orders that share a key or a number, keys without orders and orders
without keys, incomplete batches, and balances, stock and states that are not
what the orders and events make of them. It only reads.

Exit code 0: clean. 1: findings. 2: it could not look.`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			return errors.Join(atLeast("chunk", o.Chunk, 1), atLeast("max-findings", o.MaxFindings, 1))
		},
		RunE: func(c *cobra.Command, _ []string) error {
			var report store.AuditReport
			loaded, err := loadWithoutGateway(c, env)
			if err != nil {
				return exitError{exitCouldNotLook, err}
			}
			err = withStore(c, env, loaded, func(ctx context.Context, s *store.Store) (err error) {
				o.Progress = func(users, orders int64) {
					fmt.Fprintf(env.stderr, "audit: %s, %s\n", count(users, "user"), count(orders, "order"))
				}
				report, err = s.Audit(ctx, o)
				return err
			})
			if err != nil {
				return exitError{exitCouldNotLook, err}
			}
			return printAudit(env.stdout, &report, asJSON)
		},
	}, false)
	c.Flags().IntVar(&o.Chunk, "chunk", 500, "users looked at in one query")
	c.Flags().IntVar(&o.MaxFindings, "max-findings", 1000, "findings that are listed; the others are counted")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON instead of a table")
	return c
}

func printAudit(w io.Writer, report *store.AuditReport, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if err := enc.Encode(report); err != nil {
			return err
		}
	} else {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		if len(report.Findings) > 0 {
			fmt.Fprintln(table, "CHECK\tSUBJECT\tDETAIL")
		}
		for _, f := range report.Findings {
			fmt.Fprintf(table, "%s\t%s\t%s\n", f.Check, f.Subject, f.Detail)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s, %s, %s\n", count(report.Users, "user"), count(report.Orders, "order"), count(int64(len(report.Findings))+report.Dropped, "finding")); err != nil {
			return err
		}
	}
	if len(report.Findings) > 0 {
		return errSilent
	}
	return nil
}

// count says how many there are of a thing.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
