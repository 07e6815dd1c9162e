//go:build unix

package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/consumer"
	"github.com/oncegate/oncegate/order"
)

// queue is a broker that keeps no counts and repeats a returned message at
// once, ahead of the others, as Kafka's and AMQP's subscribers do.
type queue struct {
	messages []*message.Message
	refuse   int // subscriptions that fail before one succeeds

	mu    sync.Mutex
	acked []string
}

func (q *queue) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refuse > 0 {
		q.refuse--
		return nil, errors.New("the broker is away")
	}
	out := make(chan *message.Message)
	go q.deliver(ctx, out)
	return out, nil
}

func (q *queue) deliver(ctx context.Context, out chan<- *message.Message) {
	defer close(out)
	for i := 0; i < len(q.messages); {
		m := q.messages[i].Copy()
		select {
		case out <- m:
		case <-ctx.Done():
			return
		}
		select {
		case <-m.Acked():
			q.mu.Lock()
			q.acked = append(q.acked, m.UUID)
			q.mu.Unlock()
			i++
		case <-m.Nacked():
		}
	}
	<-ctx.Done()
}

func (*queue) Close() error { return nil }

func (q *queue) done() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.acked) == len(q.messages)
}

// drawer is a parker that can refuse.
type drawer struct {
	mu     sync.Mutex
	refuse int
	kept   []consumer.Parking
}

func (d *drawer) Park(_ context.Context, _ *message.Message, p consumer.Parking) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse > 0 {
		d.refuse--
		return errors.New("the drawer is stuck")
	}
	d.kept = append(d.kept, p)
	return nil
}

func memoryOptions(q *queue, d *drawer, l order.Lifecycle) consumer.Options {
	return consumer.Options{
		Subscriber: q, Topic: "payments", Name: "c", Lifecycle: l, Parker: d, Workers: 1, MaxDeliveries: 3,
		Timeout: time.Second, RetryDelay: time.Millisecond, MaxRetryDelay: 2 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	}
}

// consumeAll runs a consumer until its queue is empty.
func consumeAll(t *testing.T, o consumer.Options) {
	t.Helper()
	c, err := consumer.New(o)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context()) }()
	require.Eventually(t, o.Subscriber.(*queue).done, patience, time.Millisecond)
	require.NoError(t, c.Close())
	require.NoError(t, <-done)
}

func TestWithoutABrokersCountTheProcessCounts(t *testing.T) {
	t.Parallel()
	there := newID()
	l := newLedger(there)
	q := &queue{messages: []*message.Message{
		message.NewMessage("missing", []byte(body(newID()))),
		message.NewMessage("broken", []byte("{")),
		message.NewMessage("there", []byte(body(there))),
	}}
	d := &drawer{refuse: 2}
	o := memoryOptions(q, d, l)
	consumeAll(t, o)
	require.True(t, l.once(there))
	require.Equal(t, []string{"missing", "broken", "there"}, q.acked)
	require.Len(t, d.kept, 2)
	require.Equal(t, consumer.OrderNotFound, d.kept[0].Reason, "a parker that refuses does not change the reason")
	require.EqualValues(t, 3, d.kept[0].Deliveries)
	require.Equal(t, consumer.Undecodable, d.kept[1].Reason)
	require.EqualValues(t, 1, d.kept[1].Deliveries)
	require.Equal(t, 2, value(t, o, "oncegate_consumer_redeliveries_total", "unparkable"))
	require.Equal(t, 2, value(t, o, "oncegate_consumer_redeliveries_total", "order_not_found"))
	require.Equal(t, 1, value(t, o, "oncegate_consumer_parked_total", "undecodable"))
}

func TestOutcomesOfTheLedger(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		tries  int
		reason consumer.Reason
	}{
		"refused":          {fmt.Errorf("x: %w", order.ErrInternal), 3, consumer.Refused},
		"not found":        {fmt.Errorf("x: %w", order.ErrNotFound), 3, consumer.OrderNotFound},
		"unavailable":      {fmt.Errorf("x: %w", order.ErrUnavailable), 0, ""},
		"overloaded":       {order.ErrOverloaded, 0, ""},
		"out of time":      {context.DeadlineExceeded, 0, ""},
		"nobody knows why": {errors.New("?"), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := newID()
			l := newLedger(id)
			failures := 0
			l.setBefore(func(order.PaymentMessage) error {
				if failures++; c.reason != "" || failures <= 12 {
					return c.err
				}
				return nil
			})
			q := &queue{messages: []*message.Message{message.NewMessage("m", []byte(body(id)))}, refuse: 3}
			d := &drawer{}
			o := memoryOptions(q, d, l)
			consumeAll(t, o)
			if c.reason == "" {
				require.True(t, l.once(id))
				require.Empty(t, d.kept)
				require.Equal(t, 12, value(t, o, "oncegate_consumer_redeliveries_total", "unavailable"))
				return
			}
			require.False(t, l.once(id))
			require.Equal(t, c.tries, l.callCount())
			require.Equal(t, c.reason, d.kept[0].Reason)
		})
	}
}

func TestMoneyWithoutAUseIsCountedOnce(t *testing.T) {
	t.Parallel()
	id := newID()
	second := body(id)[:len(body(id))-3] + `-2"}}`
	q := &queue{messages: []*message.Message{
		message.NewMessage("m1", []byte(body(id))),
		message.NewMessage("m2", []byte(second)),
		message.NewMessage("m2", []byte(second)),
	}}
	o := memoryOptions(q, &drawer{}, newLedger(id))
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	consumeAll(t, o)
	require.Equal(t, 1, strings.Count(log.String(), `"effect":"already_there","refund_owed":true,"message_id":"m2","order_id":"`+id.String()), log.String())
	require.Equal(t, 1, value(t, o, "oncegate_consumer_messages_total", "already_there"))
	require.Equal(t, 1, value(t, o, "oncegate_consumer_messages_total", "duplicate"))
	families, err := o.Registerer.(prometheus.Gatherer).Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "oncegate_consumer_refunds_owed_total" {
			require.InDelta(t, 1, family.GetMetric()[0].GetCounter().GetValue(), 0)
		}
		require.NotEqual(t, "oncegate_consumer_lag", family.GetName(), "this broker does not tell")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for fault, change := range map[string]func(*consumer.Options){
		"are required":                   func(o *consumer.Options) { o.Parker = nil },
		"a topic is required":            func(o *consumer.Options) { o.Topic = "" },
		"the name must be":               func(o *consumer.Options) { o.Name = "with blank" },
		"must be above zero":             func(o *consumer.Options) { o.MaxDeliveries = -1 },
		"(1025) must not be more than":   func(o *consumer.Options) { o.Workers = 1025 },
		"must not be above the max":      func(o *consumer.Options) { o.RetryDelay = time.Hour },
		"duplicate metrics collector re": func(o *consumer.Options) { _, _ = consumer.New(*o) },
	} {
		o := memoryOptions(&queue{}, &drawer{}, newLedger())
		change(&o)
		_, err := consumer.New(o)
		require.ErrorContains(t, err, fault)
	}
}
