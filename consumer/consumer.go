package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill/message"
)

var (
	errEnded         = errors.New("the subscription has ended")
	errClosed        = errors.New("consumer: closed, or running already")
	errNotSubscribed = errors.New("consumer: no worker has a subscription")
	errMute          = errors.New("consumer: the broker does not answer")
)

// Consumer gives payment events from a broker their effect, once each.
type Consumer struct {
	o        Options
	metrics  *metrics
	attempts *attempts
	// outage counts the failures in a row of the ledger, over all workers.
	outage atomic.Int64

	subscribed atomic.Int32 // workers that have a subscription
	mute       atomic.Bool  // the broker did not tell its backlog when it was asked last

	mu      sync.Mutex
	closed  bool
	cancel  context.CancelFunc // ends a running Run
	running sync.WaitGroup
}

// New returns a consumer that has not begun: [Consumer.Run] does.
func New(o Options) (*Consumer, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	_, tells := o.Subscriber.(backlogTeller)
	m, err := newMetrics(o.Registerer, tells)
	if err != nil {
		return nil, err
	}
	counted, err := newAttempts()
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	return &Consumer{o: o, metrics: m, attempts: counted}, nil
}

// Run handles messages until ctx ends or the consumer is closed, and then waits
// for the messages in hand, each bounded by the time limit. A broker that is
// away is waited for. It runs once at a time; the error says that it did not
// begin.
func (c *Consumer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !c.begin(cancel) {
		return errClosed
	}
	defer c.end()
	var parts sync.WaitGroup
	for range c.o.Workers {
		parts.Go(func() { c.work(ctx) })
	}
	if teller, ok := c.o.Subscriber.(backlogTeller); ok {
		parts.Go(func() { c.watchBacklog(ctx, teller) })
	}
	parts.Wait()
	return nil
}

func (c *Consumer) begin(cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.cancel != nil {
		return false
	}
	c.cancel = cancel
	c.running.Add(1)
	return true
}

func (c *Consumer) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = nil
	c.running.Done()
}

// Health reports why no messages come, or nil while a worker has a subscription
// and the broker, where it can be asked, answers: a subscription to Redis Streams
// outlives an outage.
func (c *Consumer) Health() error {
	switch {
	case c.subscribed.Load() == 0:
		return errNotSubscribed
	case c.mute.Load():
		return errMute
	default:
		return nil
	}
}

// Close ends Run, waits for it and closes the subscriber.
func (c *Consumer) Close() error {
	c.mu.Lock()
	c.closed = true
	if c.cancel != nil {
		c.cancel()
	}
	c.mu.Unlock()
	c.running.Wait()
	if err := c.o.Subscriber.Close(); err != nil {
		return fmt.Errorf("consumer: close the subscriber: %w", err)
	}
	return nil
}

// work keeps one subscription alive, again and again.
func (c *Consumer) work(ctx context.Context) {
	for failures := int64(0); ; {
		subscribed, err := c.subscribe(ctx)
		if ctx.Err() != nil {
			return
		}
		if subscribed {
			failures = 0
		}
		if failures++; failures == 1 {
			c.o.Logger.WarnContext(ctx, "no messages come from the broker", "topic", c.o.Topic, "error", err)
		}
		if !pause(ctx, backoff(c.o.RetryDelay, c.o.outageDelay(), failures)) {
			return
		}
	}
}

// subscribe handles the messages of one subscription for as long as it lasts.
// The subscription outlives ctx by the message in hand.
func (c *Consumer) subscribe(ctx context.Context) (subscribed bool, err error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	// Nothing is in hand yet: a subscription that does not come about is not waited
	// for at the end.
	settled := context.AfterFunc(ctx, cancel)
	messages, err := c.o.Subscriber.Subscribe(life, c.o.Topic)
	settled()
	if err != nil {
		return false, fmt.Errorf("subscribe: %w", err)
	}
	c.metrics.subscribed.Inc()
	defer c.metrics.subscribed.Dec()
	c.subscribed.Add(1)
	defer c.subscribed.Add(-1)
	for ctx.Err() == nil {
		select {
		case m, ok := <-messages:
			if !ok {
				return true, errEnded
			}
			if ctx.Err() != nil { // both were ready, and it is the end that counts
				c.giveBack(m, stopping, 0)
				break
			}
			c.handle(ctx, m)
		case <-ctx.Done():
		}
	}
	cancel()
	c.returnAll(messages)
	return true, ctx.Err()
}

// returnAll gives back what was delivered too late, until the subscription is
// over.
func (c *Consumer) returnAll(messages <-chan *message.Message) {
	for m := range messages {
		c.giveBack(m, stopping, 0)
	}
}
