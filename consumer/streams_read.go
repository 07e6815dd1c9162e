package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
)

const (
	// blockTime bounds a wait for new entries, and so how long an end of the
	// subscription takes: the client does not interrupt a read.
	blockTime = 500 * time.Millisecond
	// claimPage bounds how many due entries come before a new one.
	claimPage = 16

	firstReadDelay = 50 * time.Millisecond
	lastReadDelay  = 2 * time.Second
)

// streamReader is one subscription.
type streamReader struct {
	s     *StreamSubscriber
	topic string
	out   chan *message.Message
}

// run reads until ctx ends, and waits out a Redis that is away.
func (r *streamReader) run(ctx context.Context) {
	due := time.NewTicker(r.s.o.ClaimInterval)
	defer due.Stop()
	claim := true // what dead consumers left comes first
	for failures := int64(0); ctx.Err() == nil; {
		more, err := r.round(ctx, claim)
		if err == nil {
			if failures > 0 {
				r.s.o.Logger.InfoContext(ctx, "the stream can be read again", "topic", r.topic)
			}
			failures, claim = 0, more || elapsed(due)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if redis.HasErrorPrefix(err, "NOGROUP") {
			err = errors.Join(err, r.s.ensureGroup(ctx, r.topic)) // Redis came back without its data
		}
		if failures++; failures == 1 {
			r.s.o.Logger.WarnContext(ctx, "the stream cannot be read", "topic", r.topic, "error", err)
		}
		claim = true
		pause(ctx, backoff(firstReadDelay, lastReadDelay, failures))
	}
}

func elapsed(t *time.Ticker) bool {
	select {
	case <-t.C:
		return true
	default:
		return false
	}
}

// round delivers what is due, when asked to, and one new entry. It tells
// whether more is due.
func (r *streamReader) round(ctx context.Context, claim bool) (more bool, err error) {
	if claim {
		if more, err = r.claimDue(ctx); err != nil {
			return false, err
		}
	}
	return more, r.readNew(ctx)
}

func (r *streamReader) readNew(ctx context.Context) error {
	block := min(blockTime, r.s.o.ClaimInterval)
	reading, cancel := context.WithTimeout(ctx, block+r.s.o.Timeout)
	defer cancel()
	streams, err := r.s.o.Client.XReadGroup(reading, &redis.XReadGroupArgs{
		Group: r.s.o.Group, Consumer: r.s.o.Instance, Streams: []string{r.topic, ">"}, Count: 1, Block: block,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil // nothing new
	}
	if err != nil {
		return fmt.Errorf("read new entries: %w", err)
	}
	for _, stream := range streams {
		for _, entry := range stream.Messages {
			if err := r.deliver(ctx, entry, &delivery{count: 1}); err != nil {
				return err
			}
		}
	}
	return nil
}

// claimDue takes over the entries that nobody has settled for too long: their
// consumer is dead, or they were given back and their time has come.
func (r *streamReader) claimDue(ctx context.Context) (more bool, err error) {
	pending, err := r.due(ctx)
	if err != nil {
		return false, err
	}
	for i := 0; i < len(pending) && ctx.Err() == nil; i++ {
		if err := r.takeOver(ctx, pending[i].ID); err != nil {
			return false, err
		}
	}
	return len(pending) == claimPage, nil
}

func (r *streamReader) due(ctx context.Context) ([]redis.XPendingExt, error) {
	ctx, cancel := context.WithTimeout(ctx, r.s.o.Timeout)
	defer cancel()
	pending, err := r.s.o.Client.XPendingExt(ctx, &redis.XPendingExtArgs{
		Stream: r.topic, Group: r.s.o.Group, Idle: r.s.o.ClaimAfter, Start: "-", End: "+", Count: claimPage,
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("look for entries that are due: %w", err)
	}
	return pending, nil
}

// takeOver makes an entry ours and delivers it, unless somebody was faster.
func (r *streamReader) takeOver(ctx context.Context, id string) error {
	pending, entries, err := r.claim(ctx, id)
	switch {
	case err != nil:
		return fmt.Errorf("take over an entry: %w", err)
	case len(pending) == 0:
		return nil
	case len(entries) == 0:
		r.lost(ctx, id)
		return nil
	default:
		return r.deliver(ctx, entries[0], &delivery{count: pending[0].RetryCount + 1, again: true})
	}
}

// claim takes an entry over if it is still due, and tells how it was pending
// until then. Both are one step: of two that try, one gets it.
func (r *streamReader) claim(ctx context.Context, id string) ([]redis.XPendingExt, []redis.XMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, r.s.o.Timeout)
	defer cancel()
	steps := r.s.o.Client.TxPipeline()
	pending := steps.XPendingExt(ctx, &redis.XPendingExtArgs{
		Stream: r.topic, Group: r.s.o.Group, Idle: r.s.o.ClaimAfter, Start: id, End: id, Count: 1,
	})
	entries := steps.XClaim(ctx, &redis.XClaimArgs{
		Stream: r.topic, Group: r.s.o.Group, Consumer: r.s.o.Instance, MinIdle: r.s.o.ClaimAfter, Messages: []string{id},
	})
	if _, err := steps.Exec(ctx); err != nil {
		return nil, nil, err
	}
	return pending.Val(), entries.Val(), nil
}
