package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// cutAgain is how long a publication whose time is over may wait anew.
const cutAgain = time.Second

// boundedPublisher gives a publisher that knows no deadline that of the message:
// a broker that is short of memory or disk takes a publication and confirms it
// when it has room again, and its client waits for as long.
type boundedPublisher struct {
	inner message.Publisher
	wires *wires

	mu      sync.Mutex
	closed  bool
	working sync.WaitGroup
}

// Publish implements [message.Publisher]. It ends with the context of the first
// message at the latest. Then nobody knows whether the messages were taken, and
// what else waits on the publisher's connections fails with it.
func (p *boundedPublisher) Publish(topic string, messages ...*message.Message) error {
	if len(messages) == 0 {
		return nil
	}
	done, err := p.begin(topic, messages)
	if err != nil {
		return err
	}
	ctx := messages[0].Context()
	select {
	case err := <-done:
		if err == nil || ctx.Err() == nil { // and was not cut for its time
			return err
		}
	case <-ctx.Done():
	}
	return fmt.Errorf("the broker has not confirmed it in time: %w", context.Cause(ctx))
}

func (p *boundedPublisher) begin(topic string, messages []*message.Message) (<-chan error, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the publisher is closed")
	}
	done := make(chan error, 1)
	p.working.Go(func() {
		over := make(chan struct{})
		var freeing sync.WaitGroup
		freeing.Go(func() { p.free(messages[0].Context(), over) })
		done <- p.inner.Publish(topic, messages...)
		close(over)
		freeing.Wait()
	})
	return done, nil
}

// free ends a publication that ctx has not ended: it may open another connection
// when one is cut, and wait there.
func (p *boundedPublisher) free(ctx context.Context, over <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-over:
		return
	}
	again := time.NewTicker(cutAgain)
	defer again.Stop()
	for {
		p.wires.cut()
		select {
		case <-again.C:
		case <-over:
			return
		}
	}
}

// Close implements [message.Publisher]. It takes no longer than the farewell, and
// what a dial that is under way may take.
func (p *boundedPublisher) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.wires.within(p.inner.Close)
	p.working.Wait()
	return err
}

// boundedSubscriber gives a subscriber that knows no deadline one for the answers
// to a subscription, and for its end.
type boundedSubscriber struct {
	inner message.Subscriber
	wires *wires
	limit time.Duration
}

// Subscribe implements [message.Subscriber].
func (s *boundedSubscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	limit := time.AfterFunc(s.limit, s.wires.cut)
	defer limit.Stop()
	return s.inner.Subscribe(ctx, topic)
}

// Close implements [message.Subscriber].
func (s *boundedSubscriber) Close() error { return s.wires.within(s.inner.Close) }
