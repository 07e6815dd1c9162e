package main

import (
	"fmt"
	"time"

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

// atLeast refuses a number below the lowest that a flag may have.
func atLeast(flag string, n, lowest int) error {
	if n < lowest {
		return fmt.Errorf("--%s (%d) must be at least %d", flag, n, lowest)
	}
	return nil
}
