//go:build unix

package testserver

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// server is what all kinds of servers have in common.
type server struct {
	// Addr is the server's host:port. A restart keeps it.
	Addr string
	// Version is the server's own word on its version.
	Version string

	owner    testing.TB // whose private server it is; nil for a shared one
	instance instance   // nil for a server that was named in the environment
	ping     func(context.Context) error
}

// operationTimeout bounds whatever is done to a running server.
const operationTimeout = 60 * time.Second

// Stop freezes the server: connections stay open, nothing is answered. It is
// frozen when Stop returns. Private servers only, like all that follow.
func (s *server) Stop() {
	s.private("Stop").Helper()
	s.do("Stop", s.instance.freeze)
}

// Cont lets a frozen server go on.
func (s *server) Cont() {
	s.private("Cont").Helper()
	s.do("Cont", s.instance.thaw)
}

// Kill ends the server at once, as a crash does, and waits until it is gone.
func (s *server) Kill() {
	s.private("Kill").Helper()
	s.do("Kill", s.instance.kill)
}

// Restart ends the server in an orderly way, unless it is dead, starts it
// again at the same address and waits until it answers. MySQL and MariaDB keep
// their data, Redis comes back empty.
func (s *server) Restart() {
	s.private("Restart").Helper()
	s.do("Restart", func(ctx context.Context) error {
		if err := s.instance.terminate(ctx); err != nil {
			return err
		}
		return startReady(ctx, s.instance, s.ping)
	})
}

// private returns the owner. Freezing a server that other tests use, or that
// is not ours, is a mistake in the test's own text.
func (s *server) private(operation string) testing.TB {
	if s.owner == nil {
		panic("testserver: " + operation + " on a shared server; start a private one")
	}
	return s.owner
}

// do reports by Errorf, so that a test may call it from any goroutine.
func (s *server) do(operation string, f func(context.Context) error) {
	s.owner.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.owner.Context()), operationTimeout+startTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		s.owner.Errorf("testserver: %s: %v", operation, err)
	}
}

// belongTo makes the server private to a test and ends it with the test.
func (s *server) belongTo(tb testing.TB) {
	s.owner = tb
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), operationTimeout)
		defer cancel()
		if err := s.instance.discard(ctx); err != nil {
			tb.Errorf("testserver: discard: %v", err)
		}
	})
}

// discard ends a server whose start failed half-way, keeping the first error.
func discardAfter(err error, i instance) error {
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	if discardErr := i.discard(ctx); discardErr != nil {
		return fmt.Errorf("%w (and discarding it: %w)", err, discardErr)
	}
	return err
}
