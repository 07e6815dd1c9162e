package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	// The databases that an audit can read.
	_ "github.com/go-sql-driver/mysql"
	_ "modernc.org/sqlite"

	"github.com/oncegate/oncegate/loadtest"
	"github.com/oncegate/oncegate/loadtest/live"
	"github.com/oncegate/oncegate/loadtest/report"
	"github.com/oncegate/oncegate/loadtest/result"
)

// gcPercent trades memory, of which a load generator has plenty, for fewer
// pauses of its own in the numbers.
const gcPercent = 400

func runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Drive a deployment and judge it",
		Long: "Drive a deployment and judge it.\n\nExit codes: 0 passed, 2 usage, 97 target unreachable, 98 a promise of the contract broken\n" +
			"or not proven, 99 threshold broken or run not valid, 130 interrupted (the report is written);\n1 none of these, but the result could not be written.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.execute(cmd) },
	}
	f.register(cmd)
	return cmd
}

func (f *runFlags) execute(cmd *cobra.Command) error {
	c, err := f.settings(time.Now())
	if err != nil {
		return err
	}
	dir := cmp.Or(f.out, filepath.Join("loadtest-results", c.Run))
	unmake, err := makeDir(dir)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	c.Dir = dir
	debug.SetGCPercent(gcPercent)

	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	view := f.view(cmd, &c, signals)
	// The first interruption ends the run and judges it, the second gives up.
	go func() {
		<-signals
		cancel()
		<-signals
		view.Stop()
		os.Exit(exitInterrupted) //nolint:revive,forbidigo // deep-exit: a second signal means now
	}()

	r, err := loadtest.Run(ctx, c)
	view.Stop()
	if err != nil {
		unmake() // there is no result to put into it
		switch {
		case ctx.Err() != nil:
			return &exitError{exitInterrupted, fmt.Errorf("interrupted before the first order: %w", err)}
		case errors.Is(err, loadtest.ErrUnreachable):
			return &exitError{exitUnreachable, err}
		}
		return err
	}
	return f.conclude(cmd.OutOrStdout(), cmd.ErrOrStderr(), r, dir)
}

// conclude tells of a run and makes its exit code. Orders were sent: what cannot
// be written must not make a broken promise look like a wrong flag.
func (f *runFlags) conclude(stdout, stderr io.Writer, r *result.Result, dir string) error {
	told := f.tell(stdout, stderr, r, dir)
	verdict := verdictOf(r)
	if told == nil {
		return verdict
	}
	code := exitUntold
	if exit, ok := errors.AsType[*exitError](verdict); ok {
		code = exit.code
	}
	return &exitError{code, fmt.Errorf("%w\n%s", told, strings.Join(report.Conclusions(r), "\n"))}
}

// verdictOf is the exit code of a run: what is worst about it.
func verdictOf(r *result.Result) error {
	switch {
	case !r.Verdict.Passed:
		return &exitError{code: exitBroken}
	case r.Interrupted:
		return &exitError{code: exitInterrupted}
	case !r.Passed():
		return &exitError{code: exitThreshold}
	}
	return nil
}

// viewer shows a run while it goes on.
type viewer interface{ Stop() }

type noView struct{}

func (noView) Stop() {}

// view chooses what is shown, and makes the run feed it.
func (f *runFlags) view(cmd *cobra.Command, c *loadtest.Config, signals chan<- os.Signal) viewer {
	w := cmd.ErrOrStderr()
	if f.quiet {
		return noView{}
	}
	file, ok := w.(*os.File)
	if !ok || f.plain || !isatty.IsTerminal(file.Fd()) {
		p := live.NewPlain(w)
		c.Watch = p.Show
		return noView{}
	}
	var in io.Reader
	if k, ok := cmd.InOrStdin().(*os.File); ok && isatty.IsTerminal(k.Fd()) {
		in = k
	}
	title := fmt.Sprintf("%s → %s · run %s", c.Scenario.Name, c.Target.Redacted(), c.Run)
	s := live.Start(title, file, in, func() {
		select {
		case signals <- os.Interrupt:
		default: // two are waiting already
		}
	})
	c.Watch = s.Show
	return s
}

// tell writes the files and says what is in them.
func (f *runFlags) tell(stdout, stderr io.Writer, r *result.Result, dir string) error {
	page, err := write(dir, r)
	if err != nil {
		return err
	}
	switch {
	case f.json:
		return r.Write(stdout)
	case f.quiet:
		for _, l := range report.Conclusions(r) {
			if _, err := fmt.Fprintln(stdout, l); err != nil {
				return fmt.Errorf("write the conclusions: %w", err)
			}
		}
		return nil
	}
	if err := report.Text(stdout, r); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stderr, "\nreport: %s\n", page)
	return err
}
