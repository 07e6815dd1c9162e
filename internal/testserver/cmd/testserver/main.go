//go:build unix

// Command testserver prepares the machine for the tests.
//
//	testserver prepare   installs the missing engines and prints what is there
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/oncegate/oncegate/internal/testserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 || args[0] != "prepare" {
		fmt.Fprintln(stderr, "usage: testserver prepare")
		return 2
	}
	if err := testserver.Prepare(ctx, stdout); err != nil {
		fmt.Fprintf(stderr, "testserver: %v\n", err)
		return 1
	}
	return 0
}
