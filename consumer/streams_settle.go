package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// deliver hands an entry over and settles it as the consumer says.
func (r *streamReader) deliver(ctx context.Context, entry redis.XMessage, d *delivery) error {
	m, err := entryMessage(entry.Values)
	d.entry, d.fault = entry.ID, err
	inHand, cancel := context.WithCancel(d.in(ctx))
	defer cancel()
	m.SetContext(inHand)
	select {
	case r.out <- m:
	case <-ctx.Done():
		d.uncounted = true
		return r.giveBack(ctx, d)
	}
	select {
	case <-m.Acked():
		return r.acknowledge(ctx, d)
	case <-m.Nacked():
		return r.giveBack(ctx, d)
	case <-r.s.closing:
		<-ctx.Done() // which follows: no other entry is read meanwhile
		return nil   // it stays pending, for somebody to take over
	}
}

// settling is a context for what must be said after the end, too.
func (r *streamReader) settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), r.s.o.Timeout)
}

func (r *streamReader) acknowledge(ctx context.Context, d *delivery) error {
	ctx, cancel := r.settling(ctx)
	defer cancel()
	if err := r.s.o.Client.XAck(ctx, r.topic, r.s.o.Group, d.entry).Err(); err != nil {
		return fmt.Errorf("acknowledge an entry: %w", err) // it comes again, as a duplicate
	}
	return nil
}

// giveBack leaves an entry pending and sets its idle time to what is left until
// its next delivery, and its count without this delivery if it is not to count.
// An entry that somebody has acknowledged meanwhile stays acknowledged.
func (r *streamReader) giveBack(ctx context.Context, d *delivery) error {
	ctx, cancel := r.settling(ctx)
	defer cancel()
	idle := max(0, r.s.o.ClaimAfter-d.delay)
	count := d.count
	if d.uncounted {
		count--
	}
	left, err := r.s.o.Client.Do(ctx, "XCLAIM", r.topic, r.s.o.Group, r.s.o.Instance, 0, d.entry,
		"IDLE", int64(idle/time.Millisecond), "RETRYCOUNT", count, "JUSTID").Slice()
	if err != nil {
		return fmt.Errorf("give an entry back: %w", err)
	}
	if len(left) > 0 {
		return nil
	}
	// It is pending no more: acknowledged, or Redis found nothing to keep pending.
	there, err := r.s.o.Client.XRange(ctx, r.topic, d.entry, d.entry).Result()
	if err != nil {
		return fmt.Errorf("look for an entry that is not pending: %w", err)
	}
	if len(there) == 0 {
		r.lost(ctx, d.entry)
	}
	return nil
}

// lost tells of an entry that was trimmed or deleted before it was handled: a
// payment event that nobody will ever see, which must not pass in silence.
func (r *streamReader) lost(ctx context.Context, entry string) {
	r.s.lost.Add(1)
	r.s.o.Logger.ErrorContext(ctx, "an entry was removed from the stream before it was handled", "topic", r.topic, "entry", entry)
}
