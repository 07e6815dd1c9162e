package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/loadtest/mark"
	"github.com/oncegate/oncegate/loadtest/scenario"
)

func markCommand() *cobra.Command {
	var path, at string
	cmd := &cobra.Command{
		Use:   "mark TEXT",
		Short: "Note that something happened, for the report of the run that is going on",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			m := mark.Mark{At: time.Now(), Text: strings.Join(args, " ")}
			if at != "" {
				if m.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
					return fmt.Errorf("--at: %w", err)
				}
			}
			if path == "" {
				if path, err = mark.DefaultPath(); err != nil {
					return err
				}
			}
			return mark.Append(path, m)
		},
	}
	cmd.Flags().StringVar(&path, "marks", "", "the file; default: the one that runs read by default")
	cmd.Flags().StringVar(&at, "at", "", "when it happened (RFC 3339); default: now")
	return cmd
}

func scenariosCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "scenarios [NAME]",
		Short: "List the built-in scenarios, or show one as YAML to start from",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				text, err := scenario.Text(args[0])
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			all, err := scenario.Builtin()
			if err != nil {
				return err
			}
			tw := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, s := range all {
				_, _ = fmt.Fprintf(tw, "%s\t%s\n", s.Name, s.Description)
			}
			return tw.Flush()
		},
	}
}
