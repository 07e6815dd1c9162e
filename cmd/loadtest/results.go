package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/loadtest/report"
	"github.com/oncegate/oncegate/loadtest/result"
)

func reportCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "report RESULT",
		Short: "Write the HTML report of a result, and show it as text",
		Long:  "Write the HTML report of a result, and show it as text. The exit code is 0 whatever the result is.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := open(args[0])
			if err != nil {
				return err
			}
			if out == "" {
				out = strings.TrimSuffix(args[0], ".json") + ".html"
				if isDir(args[0]) {
					out = filepath.Join(args[0], reportName)
				}
			}
			if err := create(out, func(w io.Writer) error { return report.HTML(w, r) }); err != nil {
				return err
			}
			if err := report.Text(cmd.OutOrStdout(), r); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "\nreport: %s\n", out)
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "the HTML file; default: beside the result")
	return cmd
}

func mergeCommand() *cobra.Command {
	var out string
	var thresholds []string
	cmd := &cobra.Command{
		Use:   "merge RESULT RESULT…",
		Short: "Add the results of several machines that ran at the same time",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			bounds, err := result.ParseThresholds(thresholds)
			if err != nil {
				return err
			}
			all := make([]*result.Result, len(args))
			for i, path := range args {
				if all[i], err = open(path); err != nil {
					return err
				}
			}
			m, err := result.Merge(all, bounds)
			if err != nil {
				return err
			}
			page, err := write(out, m)
			if err != nil {
				return err
			}
			if err := report.Text(cmd.OutOrStdout(), m); err != nil {
				return err
			}
			if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "\nreport: %s\n", page); err != nil {
				return err
			}
			return verdictOf(m)
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", filepath.Join("loadtest-results", "merged"), "directory for the result and the report")
	cmd.Flags().StringArrayVar(&thresholds, "threshold", nil, "held against the sum; repeatable")
	return cmd
}

func compareCommand() *cobra.Command {
	var failIf []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compare BEFORE AFTER",
		Short: "Lay two runs side by side",
		Long: "Lay two runs side by side. Each side may be several results of repeated runs, separated by commas:\n" +
			"their medians are compared, and a change within the spread of the repetitions is called noise.\n\n" +
			"Exit codes: 0 no --fail-if is broken, 2 usage, 99 one is, or a run cannot be held to it: it is not valid, was\n" +
			"interrupted, or its verdict was not passed.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			bounds := make([]result.FailIf, len(failIf))
			for i, text := range failIf {
				b, err := result.ParseFailIf(text)
				if err != nil {
					return err
				}
				bounds[i] = b
			}
			before, err := openList(args[0])
			if err != nil {
				return err
			}
			after, err := openList(args[1])
			if err != nil {
				return err
			}
			changes, err := result.Compare(before, after)
			if err != nil {
				return err
			}
			unusable, unlike := result.Caveats(before, after)
			checks := make([]result.ThresholdCheck, len(bounds))
			failed := len(bounds) > 0 && len(unusable) > 0 // no bound is held by numbers that may not be believed
			for i, b := range bounds {
				checks[i] = b.Check(before, after)
				failed = failed || !checks[i].Passed
			}
			if err := tellChanges(cmd.OutOrStdout(), changes, checks, slices.Concat(unusable, unlike), asJSON); err != nil {
				return err
			}
			if failed {
				return &exitError{code: exitThreshold}
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&failIf, "fail-if", nil, "such as 'p99(created)>+10%' or 'rate(all)<-5%'; repeatable; exit code 99")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the changes as JSON")
	return cmd
}

func tellChanges(w io.Writer, changes []result.Change, checks []result.ThresholdCheck, caveats []string, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(map[string]any{
			"schema": result.Schema + "/compare", "changes": changes, "fail_if": checks, "caveats": append([]string{}, caveats...),
		})
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "metric\tbefore\tafter\tchange\tnoise\t")
	for _, c := range changes {
		change, noise := "–", "one run"
		if c.Known {
			change = fmt.Sprintf("%+.1f%%", 100*c.Relative)
			if c.Relative >= math.MaxFloat32 {
				change = "new"
			}
		}
		if c.Noise > 0 {
			noise = fmt.Sprintf("±%.1f%%", 100*c.Noise)
			if !c.Clear {
				noise += ", no clear change"
			}
		}
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t\n", c.Metric, c.Before, c.After, change, noise)
	}
	for _, c := range caveats {
		_, _ = fmt.Fprintf(tw, "BEWARE: %s\n", c)
	}
	for _, c := range checks {
		word := "passed"
		if !c.Passed {
			word = "BROKEN"
		}
		_, _ = fmt.Fprintf(tw, "fail-if %s: %s (%s)\n", c.Threshold, word, c.Actual)
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}
