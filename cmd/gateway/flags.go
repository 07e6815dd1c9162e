package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oncegate/oncegate/configs"
)

// duration is a flag that is read and shown as the settings are: 7d is one.
type duration time.Duration

// String implements [pflag.Value].
func (d *duration) String() string { return configs.FormatDuration(time.Duration(*d)) }

// Set implements [pflag.Value].
func (d *duration) Set(text string) error {
	v, err := configs.ParseDuration(text)
	*d = duration(v)
	return err
}

// Type implements [pflag.Value].
func (*duration) Type() string { return "duration" }

// once refuses a second value of a flag: the last would be taken in silence.
type once struct {
	pflag.Value
	given bool
}

var (
	errTwice     = errors.New("it is given twice")
	errListTwice = errors.New("it is given twice: the values of a list are separated by commas")
)

// Set implements [pflag.Value].
func (o *once) Set(text string) error {
	switch {
	case o.given && o.Type() == "list":
		return errListTwice
	case o.given:
		return errTwice
	}
	o.given = true
	return o.Value.Set(text)
}

// onlyOnce does so for all flags of a command and those below it, but for lists
// that grow with each value.
func onlyOnce(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, grows := f.Value.(pflag.SliceValue); !grows {
			f.Value = &once{Value: f.Value}
		}
	})
	for _, child := range c.Commands() {
		onlyOnce(child)
	}
}

// completing reports whether a shell asks how a line may go on: cobra parses the
// flags of such a line twice.
func completing(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// atLeast refuses a number below the lowest that a flag may have.
func atLeast(flag string, n, lowest int) error {
	if n < lowest {
		return fmt.Errorf("--%s (%d) must be at least %d", flag, n, lowest)
	}
	return nil
}
