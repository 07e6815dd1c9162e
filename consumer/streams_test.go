//go:build unix

package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/consumer"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

func unmarshal(t *testing.T, fields map[string]any) *message.Message {
	t.Helper()
	m, err := redisstream.DefaultMarshallerUnmarshaller{}.Unmarshal(fields)
	require.NoError(t, err)
	return m
}

// take reads the next entry as a consumer that then dies, long enough ago.
func (s *scene) take() redis.XMessage {
	s.t.Helper()
	ctx := s.t.Context()
	err := s.redis.XGroupCreateMkStream(ctx, s.topic, group, "0").Err()
	require.True(s.t, err == nil || strings.HasPrefix(err.Error(), "BUSYGROUP"))
	read, err := s.redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: group, Consumer: "dead", Streams: []string{s.topic, ">"}, Count: 1, Block: -1,
	}).Result()
	require.NoError(s.t, err)
	s.age(read[0].Messages[0].ID, 1)
	return read[0].Messages[0]
}

// age makes a pending entry one that was delivered so often, and is due.
func (s *scene) age(id string, deliveries int) {
	s.t.Helper()
	require.NoError(s.t, s.redis.Do(s.t.Context(), "XCLAIM", s.topic, group, "dead", 0, id,
		"IDLE", s.claimAfter.Milliseconds(), "RETRYCOUNT", deliveries, "JUSTID").Err())
}

func TestEventPublishedTwiceHasItsEffectOnce(t *testing.T) {
	t.Parallel()
	s, id := newScene(t, testserver.Redis(t)), newID()
	l := newLedger(id)
	o := s.options(l, "a")
	s.publish("evt_1", body(id))
	s.publish("evt_1", body(id))
	s.consume(o)
	s.eventually("both are acknowledged", func() bool { return l.callCount() == 2 && s.settled() })
	require.True(t, l.once(id))
	require.Empty(t, s.parked())
	require.Equal(t, 1, value(t, o, "oncegate_consumer_messages_total", "applied"))
	require.Equal(t, 1, value(t, o, "oncegate_consumer_messages_total", "duplicate"))
	require.Equal(t, 0, value(t, o, "oncegate_consumer_messages_total", "already_there"))
}

func TestLostAcknowledgementIsMadeUpAtTheFirstRedelivery(t *testing.T) {
	t.Parallel()
	s := newScene(t, testserver.Redis(t))
	l := newLedger()
	const lost = 10
	ids := make([]order.ID, 0, lost)
	for range lost {
		id := newID()
		ids = append(ids, id)
		l.place(id)
		s.add("message_id", "evt-"+id.String(), "payload", body(id))
	}
	first := s.options(l, "a")
	// Everything takes effect, and then the process is gone: nothing is acknowledged.
	subscriber := first.Subscriber
	messages, err := subscriber.Subscribe(t.Context(), s.topic)
	require.NoError(t, err)
	dead := &silent{messages: messages}
	first.Subscriber, first.Workers = dead, 1
	stop := s.consume(first)
	s.eventually("the first takes effect", func() bool { return l.callCount() == 1 })
	stop()
	require.NoError(t, subscriber.Close())
	for range lost - 1 {
		s.take()
	}
	pending, err := s.redis.XPending(t.Context(), s.topic, group).Result()
	require.NoError(t, err)
	require.EqualValues(t, lost, pending.Count)
	s.age(pending.Lower, 1)

	s.consume(s.options(l, "b"))
	s.eventually("all are acknowledged", s.settled)
	require.True(t, l.once(ids...))
	require.Equal(t, lost+1, l.callCount(), "one redelivery each is enough")
	require.Empty(t, s.parked())
}

// silent passes messages on in copies, so that no acknowledgement arrives.
type silent struct{ messages <-chan *message.Message }

func (s *silent) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		select {
		case m := <-s.messages:
			select {
			case out <- m.Copy():
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		<-ctx.Done()
	}()
	return out, nil
}

func (*silent) Close() error { return nil }

func TestTwoConsumersDivideTheMessages(t *testing.T) {
	t.Parallel()
	s := newScene(t, testserver.Redis(t))
	l := newLedger()
	var ids []order.ID
	for range 150 {
		id := newID()
		ids = append(ids, id)
		l.place(id)
		for range 2 {
			s.add("message_id", "evt-"+id.String(), "payload", body(id))
		}
	}
	a, b := s.options(l, "a"), s.options(l, "b")
	// One alone could have them all before the other has a connection.
	var calls atomic.Int64
	both := make(chan struct{})
	l.setBefore(func(order.PaymentMessage) error {
		if calls.Add(1) == int64(a.Workers+b.Workers) {
			close(both)
		}
		<-both
		return nil
	})
	s.consume(a)
	s.consume(b)
	s.eventually("all are acknowledged", s.settled)
	require.True(t, l.once(ids...))
	require.Equal(t, 2*len(ids), l.callCount())
	require.Empty(t, s.parked())
	consumers, err := s.redis.XInfoConsumers(t.Context(), s.topic, group).Result()
	require.NoError(t, err)
	require.Len(t, consumers, 2)
}

func TestEntryThatVanishesUnhandledIsCounted(t *testing.T) {
	t.Parallel()
	s := newScene(t, testserver.Redis(t))
	s.publish("evt_1", body(newID()))
	require.NoError(t, s.redis.XDel(t.Context(), s.topic, s.take().ID).Err())
	o := s.options(newLedger(), "a")
	s.consume(o)
	s.eventually("it is missed", func() bool {
		b, err := o.Subscriber.(*consumer.StreamSubscriber).Backlog(t.Context(), s.topic)
		return err == nil && b.Lost == 1 && b.Pending == 0
	})
}

func TestEntryThatVanishesFromTheHandIsCounted(t *testing.T) {
	t.Parallel()
	s := newScene(t, testserver.Redis(t))
	name := s.add("message_id", "evt_1", "payload", body(newID()))
	l := newLedger()
	l.setBefore(func(order.PaymentMessage) error {
		return errors.Join(order.ErrNotFound, s.redis.XDel(context.Background(), s.topic, name).Err())
	})
	o := s.options(l, "a")
	s.consume(o)
	s.eventually("it is missed", func() bool {
		b, err := o.Subscriber.(*consumer.StreamSubscriber).Backlog(t.Context(), s.topic)
		return err == nil && b.Lost == 1 && b.Pending == 0
	})
	require.Equal(t, 1, l.callCount())
}

func TestRunEndsAfterTheMessageInHand(t *testing.T) {
	t.Parallel()
	s, id, next := newScene(t, testserver.Redis(t)), newID(), newID()
	l := newLedger(id, next)
	arrived, release := make(chan struct{}), make(chan struct{})
	l.setBefore(func(order.PaymentMessage) error { close(arrived); <-release; return nil })
	s.publish("evt_1", body(id))
	s.publish("evt_2", body(next))
	o := s.options(l, "a")
	o.Workers = 1
	c, err := consumer.New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var ended atomic.Bool
	done := make(chan error, 1)
	go func() {
		err := c.Run(ctx)
		ended.Store(true)
		done <- err
	}()
	<-arrived
	require.Error(t, c.Run(t.Context()), "it runs once at a time")
	cancel()
	require.False(t, ended.Load())
	close(release)
	require.NoError(t, <-done)
	require.True(t, l.once(id))
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	require.Error(t, c.Run(t.Context()), "it is closed")
	groups, err := s.redis.XInfoGroups(t.Context(), s.topic).Result()
	require.NoError(t, err)
	require.Equal(t, 1, l.callCount())
	require.LessOrEqual(t, groups[0].Pending, int64(1), "the message in hand was acknowledged")
	l.setBefore(nil)
	s.consume(s.options(l, "b"))
	s.eventually("the next is handled by the next", func() bool { return l.once(next) && s.settled() })
}

func TestBacklogIsShown(t *testing.T) {
	t.Parallel()
	s := newScene(t, testserver.Redis(t))
	l := newLedger()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	l.setBefore(func(order.PaymentMessage) error { <-release; return errors.New("released") })
	for i := range 3 {
		s.publish(fmt.Sprint("evt_", i), body(newID()))
	}
	require.NoError(t, s.redis.XGroupCreateMkStream(t.Context(), s.topic, group, "0").Err())
	o := s.options(l, "a")
	b, err := o.Subscriber.(*consumer.StreamSubscriber).Backlog(t.Context(), s.topic)
	require.NoError(t, err)
	require.Equal(t, consumer.Backlog{Lag: 3}, b)
	_, err = o.Subscriber.(*consumer.StreamSubscriber).Backlog(t.Context(), "another")
	require.Error(t, err)
	require.NoError(t, o.Subscriber.Close())
	_, err = o.Subscriber.Subscribe(t.Context(), s.topic)
	require.Error(t, err)
}

func TestTimesThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, testserver.Redis(t))
	o := s.options(newLedger(), "a")
	t.Cleanup(func() { require.NoError(t, o.Subscriber.Close()) })
	o.Timeout = claimAfter
	_, err := consumer.New(o)
	require.ErrorContains(t, err, "is claimed by others after 20s")
	subscriber, err := consumer.NewStreamSubscriber(consumer.StreamOptions{
		Client: s.server.Client(t), Group: group, ClaimAfter: time.Minute, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	patient := o
	patient.Subscriber, patient.Timeout, patient.MaxRetryDelay = subscriber, time.Second, time.Minute
	_, err = consumer.New(patient)
	require.NoError(t, err)
	patient.MaxRetryDelay += time.Second
	_, err = consumer.New(patient)
	require.ErrorContains(t, err, "the max retry delay (1m1s) must not be above")
	_, err = consumer.NewStreamSubscriber(consumer.StreamOptions{Logger: slog.New(slog.DiscardHandler)})
	require.Error(t, err)
}
