package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
)

// The exit codes. They are part of the interface.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	// exitCouldNotLook: an audit that has no verdict.
	exitCouldNotLook = 2
)

// exitError fails a command with an exit code of its own.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string { return e.err.Error() }

func (e exitError) Unwrap() error { return e.err }

// environment is what a command gets from the process it runs in.
type environment struct {
	args, vars     []string
	stdout, stderr io.Writer // data; progress and complaints
}

// lookup returns a variable, or "".
func (e environment) lookup(name string) string {
	for _, v := range e.vars {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, env environment) int {
	started := false // what fails before a command starts is its usage
	root := &cobra.Command{
		Use:               "oncegate",
		Short:             "One order per intent: a gateway that makes retries safe",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.AddCommand(
		serveCommand(env), migrateCommand(env), tokenCommand(env), configCommand(env),
		consumeCommand(env), auditCommand(env), compactCommand(env), keyCommand(env), ttlCommand(env), healthcheckCommand(env), versionCommand(env),
	)
	onStart(root, func() { started = true })
	if !completing(env.args) {
		onlyOnce(root)
	}
	root.SetHelpCommand(helpCommand())
	root.SetArgs(env.args)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	err := root.ExecuteContext(ctx)
	var own exitError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errSilent):
		return exitFailed
	case errors.As(err, &own):
		fmt.Fprintf(env.stderr, "oncegate: %v\n", err)
		return own.code
	case !started:
		fmt.Fprintf(env.stderr, "oncegate: %v\nRun 'oncegate --help' for usage.\n", err)
		return exitUsage
	default:
		fmt.Fprintf(env.stderr, "oncegate: %v\n", err)
		return exitFailed
	}
}

// errSilent fails a command whose output has said everything.
var errSilent = errors.New("failed")

// helpCommand prints the help of a command. That of cobra takes a command that
// does not exist for a success.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return fmt.Errorf("unknown command %q for %q", rest[0], about.CommandPath())
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// onStart calls started before any command below c does its work.
func onStart(c *cobra.Command, started func()) {
	for _, child := range c.Commands() {
		onStart(child, started)
	}
	if do := c.RunE; do != nil && !c.HasSubCommands() {
		c.RunE = func(c *cobra.Command, args []string) error {
			started()
			return do(c, args)
		}
	}
}

// group is a command that only holds others.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		// Without a RunE, cobra would print the help and call it a success.
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("%q needs one of its commands", c.CommandPath())
		},
	}
	c.AddCommand(children...)
	return c
}

const configFlag = "config"

// withConfig gives a command the flags of the configuration; only serve shows
// the settings in its help.
func withConfig(c *cobra.Command, show bool) *cobra.Command {
	c.Flags().StringP(configFlag, "c", "", "YAML file (default $"+configs.FileVariable+")")
	configs.AddFlags(c.Flags())
	if !show {
		configs.HideFlags(c.Flags())
	}
	return c
}

// loadConfig loads what the flags of [withConfig] and the environment say.
func loadConfig(c *cobra.Command, env environment) (*configs.Loaded, error) {
	sources, err := configSources(c, env)
	if err != nil {
		return nil, err
	}
	return configs.Load(sources)
}

// loadWithoutGateway is [loadConfig] for a command that takes no orders: it runs
// without what only a gateway needs.
func loadWithoutGateway(c *cobra.Command, env environment) (*configs.Loaded, error) {
	sources, err := configSources(c, env)
	if err != nil {
		return nil, err
	}
	sources.NoGateway = true
	return configs.Load(sources)
}

func configSources(c *cobra.Command, env environment) (configs.Sources, error) {
	file, err := c.Flags().GetString(configFlag)
	if file == "" {
		file = env.lookup(configs.FileVariable)
	}
	return configs.Sources{File: file, Environ: env.vars, Flags: c.Flags()}, err
}
