package consumer

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
)

// lazy opens something when it is first needed, and tries again when that did
// not succeed: a broker that is away must not keep the process from starting.
type lazy[T io.Closer] struct {
	open func() (T, error)

	mu     sync.Mutex
	opened bool
	closed bool
	it     T
}

func (l *lazy[T]) get() (it T, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return it, errors.New("closed")
	}
	if !l.opened {
		if l.it, err = l.open(); err != nil {
			return it, err
		}
		l.opened = true
	}
	return l.it, nil
}

// Close closes what was opened.
func (l *lazy[T]) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	opened := l.opened && !l.closed
	l.closed = true
	if !opened {
		return nil
	}
	return l.it.Close()
}

type lazySubscriber struct{ lazy[message.Subscriber] }

func newLazySubscriber(open func() (message.Subscriber, error)) *lazySubscriber {
	return &lazySubscriber{lazy[message.Subscriber]{open: open}}
}

// Subscribe implements [message.Subscriber].
func (l *lazySubscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	s, err := l.get()
	if err != nil {
		return nil, err
	}
	return s.Subscribe(ctx, topic)
}

type lazyPublisher struct{ lazy[message.Publisher] }

func newLazyPublisher(open func() (message.Publisher, error)) *lazyPublisher {
	return &lazyPublisher{lazy[message.Publisher]{open: open}}
}

// Publish implements [message.Publisher].
func (l *lazyPublisher) Publish(topic string, messages ...*message.Message) error {
	p, err := l.get()
	if err != nil {
		return err
	}
	return p.Publish(topic, messages...)
}
