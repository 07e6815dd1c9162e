package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	// The Redis client has one logger for the whole process, which writes a line
	// of its own form per failed connection. The filter says what matters of it.
	logging.Disable()
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
