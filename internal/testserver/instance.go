//go:build unix

package testserver

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// instance is one server, as a process of this machine or a container.
type instance interface {
	// start starts it, the first time or again after its death, with the data
	// it had. It does not wait for the server to be ready.
	start(ctx context.Context) error
	// dead is closed when the server that was started last has ended.
	dead() <-chan struct{}
	// freeze and thaw stop it from running and let it go on. A frozen server
	// is frozen when freeze returns.
	freeze(ctx context.Context) error
	thaw(ctx context.Context) error
	// terminate asks it to end, kill ends it at once; both wait for its end.
	terminate(ctx context.Context) error
	kill(ctx context.Context) error
	// discard kills it and removes all that it left.
	discard(ctx context.Context) error
	// lastWords are the last lines of its log.
	lastWords() string
}

// startTimeout bounds a start with crash recovery on a busy machine.
const startTimeout = 90 * time.Second

// startReady starts the instance and waits until ping succeeds.
func startReady(ctx context.Context, i instance, ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := i.start(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := pingOnce(ctx, ping)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-i.dead():
			return fmt.Errorf("server ended while starting:\n%s", i.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("server is not ready: %w\n%s", errors.Join(ctx.Err(), err), i.lastWords())
		}
	}
}

func pingOnce(ctx context.Context, ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return ping(ctx)
}
