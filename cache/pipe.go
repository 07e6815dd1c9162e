package cache

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// pipe sends a command and waits for its reply, or for the end of ctx. After an
// error the command may be running still: it must not be looked at.
type pipe interface {
	send(ctx context.Context, cmd redis.Cmder) error
}

// once is a command that the client must never send again by itself. A Cluster
// client otherwise does, whatever its retries are set to; it still follows MOVED
// and ASK, where the command was not carried out.
type once struct{ *redis.StringCmd }

// NoRetry tells the client.
func (once) NoRetry() bool { return true }

func command(ctx context.Context, args ...any) once { return once{redis.NewStringCmd(ctx, args...)} }

// maxQueued bounds the commands that wait for their turn in a shared pipeline.
const maxQueued = 8192

func newPipe(client redis.UniversalClient, pipelining bool) (pipe, error) {
	if !pipelining {
		return plain{client}, nil
	}
	o := redis.DefaultAutoPipelineOptions()
	o.MaxQueuedCommands = maxQueued
	engine, err := client.AsyncAutoPipelineWithOptions(o)
	if err != nil {
		return nil, fmt.Errorf("cache: pipelining: %w", err)
	}
	return shared{engine}, nil
}

// plain takes a connection of the pool for each command.
type plain struct{ client redis.UniversalClient }

func (p plain) send(ctx context.Context, cmd redis.Cmder) error { return p.client.Process(ctx, cmd) }

// shared puts the commands of all callers into one ordered stream per node.
// The engine itself heeds no context, so the waiting does: who gives up leaves
// his command to be carried out and its reply to be dropped, and nobody else
// notices.
type shared struct{ engine *redis.AutoPipeliner }

func (s shared) send(ctx context.Context, cmd redis.Cmder) error {
	return s.engine.Submit(ctx, cmd).WaitContext(ctx)
}
