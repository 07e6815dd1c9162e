package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
)

// StreamOptions are what a [StreamSubscriber] is made of.
type StreamOptions struct {
	// Client is the subscriber's own, for its reads block. Required; Close
	// closes it. Redis 7.0 or later, or Valkey.
	Client redis.UniversalClient
	// Group is the consumer group. It is made when it is not there, and begins
	// with the oldest entry. Required.
	Group string
	// Instance names this process within the group, for XINFO CONSUMERS. Two
	// processes may share a name. Default: the host name.
	Instance string
	// ClaimAfter is how long an entry may be in hand before it counts as left
	// by a dead consumer and is taken over. Default 1 min.
	ClaimAfter time.Duration
	// ClaimInterval is how often entries to take over, and entries whose
	// redelivery is due, are looked for. Default 1 s.
	ClaimInterval time.Duration
	// Timeout bounds a command. Default 3 s.
	Timeout time.Duration

	Logger *slog.Logger // required
}

func (o *StreamOptions) setDefaults() error {
	if o.Client == nil || o.Group == "" || o.Logger == nil {
		return errors.New("consumer: streams: a client, a group and a logger are required")
	}
	if o.Instance == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("consumer: streams: name this instance: %w", err)
		}
		o.Instance = host
	}
	setDefault(&o.ClaimAfter, time.Minute)
	setDefault(&o.ClaimInterval, time.Second)
	setDefault(&o.Timeout, 3*time.Second)
	if o.ClaimAfter < time.Millisecond || o.ClaimInterval < time.Millisecond || o.Timeout < time.Millisecond {
		return errors.New("consumer: streams: claim after, claim interval and timeout must be at least 1 ms")
	}
	return nil
}

// StreamSubscriber is a Watermill subscriber for Redis Streams. The group's
// list of pending entries is all the state there is: it holds how often an
// entry was delivered and, by its idle time, when it is due again. So counts
// and delays survive the death of any process, and a message that waits holds
// up no other.
type StreamSubscriber struct {
	subscriptions
	o    StreamOptions
	lost atomic.Int64
}

var (
	_ message.Subscriber = (*StreamSubscriber)(nil)
	_ backlogTeller      = (*StreamSubscriber)(nil)
)

// NewStreamSubscriber returns a subscriber that has not connected yet.
func NewStreamSubscriber(o StreamOptions) (*StreamSubscriber, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	return &StreamSubscriber{subscriptions: subscriptions{closing: make(chan struct{})}, o: o}, nil
}

// Subscribe implements [message.Subscriber]. It delivers one message at a time;
// to have more in hand, subscribe again. When ctx ends, the message in hand is
// still waited for until it is settled or the subscriber is closed.
func (s *StreamSubscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.ensureGroup(ctx, topic); err != nil {
		end()
		return nil, err
	}
	r := &streamReader{s: s, topic: topic, out: make(chan *message.Message)}
	go func() {
		defer end()
		defer close(r.out)
		r.run(ctx)
	}()
	return r.out, nil
}

// Close ends all subscriptions and closes the client. What was not settled is
// taken over by others.
func (s *StreamSubscriber) Close() error {
	if !s.end() {
		return nil
	}
	if err := s.o.Client.Close(); err != nil {
		return fmt.Errorf("close the client: %w", err)
	}
	return nil
}

// Backlog tells what the stream still holds for the group.
func (s *StreamSubscriber) Backlog(ctx context.Context, topic string) (Backlog, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	groups, err := s.o.Client.XInfoGroups(ctx, topic).Result()
	if err != nil {
		return Backlog{}, fmt.Errorf("read the groups of %s: %w", topic, err)
	}
	for i := range groups {
		if groups[i].Name == s.o.Group {
			return Backlog{Lag: groups[i].Lag, Pending: groups[i].Pending, Lost: s.lost.Load()}, nil
		}
	}
	return Backlog{}, fmt.Errorf("%s has no group %s", topic, s.o.Group)
}

// ensureGroup makes the group, and the stream with it. It begins with the
// oldest entry: what had been dealt with is recognised.
func (s *StreamSubscriber) ensureGroup(ctx context.Context, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	err := s.o.Client.XGroupCreateMkStream(ctx, topic, s.o.Group, "0").Err()
	if err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") {
		return fmt.Errorf("make the group %s of %s: %w", s.o.Group, topic, err)
	}
	return nil
}

// patience is how long a message may be in hand.
func (s *StreamSubscriber) patience() time.Duration { return s.o.ClaimAfter }
