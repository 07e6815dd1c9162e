package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly stop; with the handler gone, a second
	// one ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, environment{
		args: os.Args[1:], vars: os.Environ(), stdout: os.Stdout, stderr: os.Stderr,
	})
	stop()
	os.Exit(code)
}
