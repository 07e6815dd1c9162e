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
	closed bool
	last   *attempt[T] // that has succeeded, or is under way
}

// attempt is shared by all who need its result: one after the other they would
// wait for a silent broker as many times as they are.
type attempt[T any] struct{ result func() (T, error) }

func (l *lazy[T]) get() (it T, err error) {
	a := l.attempt()
	if a == nil {
		return it, errors.New("closed")
	}
	if it, err = a.result(); err != nil {
		l.forget(a)
	}
	return it, err
}

// attempt returns the last one or a new one, or nil after Close.
func (l *lazy[T]) attempt() *attempt[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	if l.last == nil {
		l.last = &attempt[T]{sync.OnceValues(l.open)}
	}
	return l.last
}

func (l *lazy[T]) forget(a *attempt[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == a {
		l.last = nil
	}
}

// Close closes what was opened, or is being opened.
func (l *lazy[T]) Close() error {
	l.mu.Lock()
	a := l.last
	l.last, l.closed = nil, true
	l.mu.Unlock()
	if a == nil {
		return nil
	}
	if it, err := a.result(); err == nil {
		return it.Close()
	}
	return nil
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
