// Command loadtest drives an oncegate deployment, judges it and reports. See
// docs/loadtest.md.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// The exit codes. 99 is what k6 uses for the same.
const (
	exitOK          = 0
	exitUntold      = 1 // the run passed, and the result could not be written
	exitUsage       = 2
	exitUnreachable = 97
	exitBroken      = 98  // a promise of the contract was broken, or could not be proven
	exitThreshold   = 99  // a threshold was broken, or the run is not valid
	exitInterrupted = 130 // with the report written
)

// exitError ends the program with a code. Without a text the result has already
// been told.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func main() {
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute runs one command line and returns the exit code.
func execute(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "loadtest",
		Short:         "Drive a deployment, judge it, and tell the truth about it",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(args)
	root.AddCommand(runCommand(), reportCommand(), compareCommand(), mergeCommand(), markCommand(), scenariosCommand())
	root.AddCommand(benchCommands()...)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	code := exitUsage
	if exit, ok := errors.AsType[*exitError](err); ok {
		code = exit.code
	}
	if text := err.Error(); text != "" {
		_, _ = fmt.Fprintln(stderr, "loadtest:", text) // nowhere else to say it
	}
	return code
}

// version is what the build knows of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return v + " " + s.Value[:12]
		}
	}
	return v
}
