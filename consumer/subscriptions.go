package consumer

import (
	"context"
	"errors"
	"sync"
)

// subscriptions are those of one subscriber, which ends them all when it closes.
type subscriptions struct {
	closing chan struct{}

	mu      sync.Mutex
	closed  bool
	readers sync.WaitGroup
}

// begin returns a context that ends with ctx or with the subscriber, and what the
// subscription's reader calls at its end.
func (s *subscriptions) begin(ctx context.Context) (life context.Context, end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, errors.New("the subscriber is closed")
	}
	life, cancel := context.WithCancel(ctx)
	s.readers.Go(func() {
		select {
		case <-s.closing:
			cancel()
		case <-life.Done():
		}
	})
	s.readers.Add(1)
	return life, func() { cancel(); s.readers.Done() }, nil
}

// end ends all subscriptions and waits for their readers. It reports whether it
// was the first to do so.
func (s *subscriptions) end() bool {
	s.mu.Lock()
	first := !s.closed
	if first {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	s.readers.Wait()
	return first
}
