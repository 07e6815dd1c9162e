package consumer

import (
	"context"
	"time"
)

// backlogInterval is how often the broker is asked what it still holds.
const backlogInterval = 5 * time.Second

// Backlog is what a broker still holds for a consumer.
type Backlog struct {
	Lag     int64 // never delivered; -1 when unknown
	Pending int64 // delivered, not acknowledged
	Lost    int64 // gone before they were acknowledged, since the start
}

// backlogTeller is a subscriber that can tell its backlog.
type backlogTeller interface {
	Backlog(ctx context.Context, topic string) (Backlog, error)
}

// watchBacklog keeps the gauges fresh until ctx ends.
func (c *Consumer) watchBacklog(ctx context.Context, from backlogTeller) {
	for {
		c.readBacklog(ctx, from)
		if !pause(ctx, backlogInterval) {
			return
		}
	}
}

func (c *Consumer) readBacklog(ctx context.Context, from backlogTeller) {
	ctx, cancel := context.WithTimeout(ctx, backlogInterval)
	defer cancel()
	b, err := from.Backlog(ctx, c.o.Topic)
	c.mute.Store(err != nil)
	if err != nil {
		c.metrics.backlog.answers.Set(0)
		c.o.Logger.DebugContext(ctx, "the broker does not tell its backlog", "error", err)
		return
	}
	c.metrics.backlog.answers.Set(1)
	c.metrics.backlog.lag.Set(float64(b.Lag))
	c.metrics.backlog.pending.Set(float64(b.Pending))
	c.metrics.backlog.lost.Set(float64(b.Lost))
}
