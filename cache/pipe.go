package cache

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// pipe sends a command and waits for its reply, at most until the limit is over.
// It need not heed the end of ctx before that. After an error the command may be
// running still: it must not be looked at.
type pipe interface {
	send(ctx context.Context, limit time.Duration, cmd redis.Cmder) error
}

// once is a command that the client must never send again by itself. A Cluster
// client otherwise does, whatever its retries are set to; it still follows MOVED
// and ASK, where the command was not carried out.
type once struct{ *redis.StringCmd }

// NoRetry tells the client.
func (once) NoRetry() bool { return !flawNoOwnerToken }

func command(ctx context.Context, args ...any) once { return once{redis.NewStringCmd(ctx, args...)} }

// aloneAtOnce is up to how many commands under way each takes a connection of its
// own: a lone command costs half of what it costs in a stream, and the second one
// already gains by sharing.
const aloneAtOnce = 1

func newPipe(client redis.UniversalClient, pipelining bool) (pipe, error) {
	if !pipelining {
		return plain{client}, nil
	}
	if single, ok := client.(*redis.Client); ok {
		return &combined{client: single}, nil
	}
	p, err := newStreams(client)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func newStreams(client redis.UniversalClient) (*shared, error) {
	o := redis.DefaultAutoPipelineOptions()
	o.MaxQueuedCommands = maxQueued
	engine, err := client.AsyncAutoPipelineWithOptions(o)
	if err != nil {
		return nil, fmt.Errorf("cache: pipelining: %w", err)
	}
	return &shared{few: plain{client}, many: stream{engine}}, nil
}

// plain takes a connection of the pool for each command.
type plain struct{ client redis.UniversalClient }

func (p plain) send(ctx context.Context, limit time.Duration, cmd redis.Cmder) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return p.client.Process(ctx, cmd)
}

// stream puts the commands of all callers into one ordered stream per node.
// The engine itself heeds no context, so the waiting does: who gives up leaves
// his command to be carried out and its reply to be dropped, and nobody else
// notices.
type stream struct{ engine *redis.AutoPipeliner }

func (s stream) send(ctx context.Context, limit time.Duration, cmd redis.Cmder) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return s.engine.Submit(ctx, cmd).WaitContext(ctx)
}

// shared has few concurrent commands sent each for itself, and many in streams.
type shared struct {
	few, many pipe
	underWay  atomic.Int64
}

func (s *shared) send(ctx context.Context, limit time.Duration, cmd redis.Cmder) error {
	defer s.underWay.Add(-1)
	if s.underWay.Add(1) <= aloneAtOnce {
		return s.few.send(ctx, limit, cmd)
	}
	return s.many.send(ctx, limit, cmd)
}

// inOrder returns the pipe on which a command cannot overtake one that its
// sender gave up waiting for, as far as there is such a pipe.
func inOrder(p pipe) pipe {
	if s, ok := p.(*shared); ok {
		return s.many
	}
	return p
}
