//go:build !unix

package main

import "github.com/spf13/cobra"

// benchCommands are none: the servers that a bench needs are started on Unix only.
func benchCommands() []*cobra.Command { return nil }
