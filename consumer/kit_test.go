//go:build unix

package consumer_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/consumer"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

const (
	group = "oncegate"
	// claimAfter is longer than a busy machine may hold up whoever has a message.
	claimAfter = 20 * time.Second
	soon       = 2500 * time.Millisecond // where somebody dies, and is waited for
	patience   = 2 * time.Minute         // of a test, for what must come to pass
	tick       = 5 * time.Millisecond
)

// ledger is a lifecycle in memory that keeps the contract of Apply.
type ledger struct {
	mu      sync.Mutex
	orders  map[order.ID]bool
	seen    map[string]order.Digest
	owed    map[string]bool // messages whose payment is owed back
	applied map[order.ID]int
	calls   int
	before  func(order.PaymentMessage) error // may refuse, or wait
}

func newLedger(orders ...order.ID) *ledger {
	l := &ledger{orders: map[order.ID]bool{}, seen: map[string]order.Digest{}, owed: map[string]bool{}, applied: map[order.ID]int{}}
	for _, id := range orders {
		l.orders[id] = true
	}
	return l
}

func (l *ledger) Apply(_ context.Context, m order.PaymentMessage) (order.Transition, error) {
	l.mu.Lock()
	l.calls++
	before := l.before
	l.mu.Unlock()
	if before != nil {
		if err := before(m); err != nil {
			return order.Transition{}, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name := m.Consumer + "/" + m.MessageID
	digest, seen := l.seen[name]
	switch {
	case seen && digest != m.Digest:
		return order.Transition{Effect: order.Parked}, nil
	case seen:
		return order.Transition{Effect: order.Applied, Duplicate: true, RefundOwed: l.owed[name]}, nil
	case !l.orders[m.OrderID]:
		return order.Transition{}, fmt.Errorf("apply: %w", order.ErrNotFound)
	}
	l.seen[name] = m.Digest
	if l.applied[m.OrderID]++; l.applied[m.OrderID] > 1 {
		l.owed[name] = true
		return order.Transition{Effect: order.AlreadyThere, RefundOwed: true}, nil
	}
	return order.Transition{Effect: order.Applied}, nil
}

func (*ledger) Cancel(context.Context, string, order.ID) (order.Transition, error) {
	return order.Transition{}, order.ErrInternal
}

func (*ledger) Ship(context.Context, order.ID) (order.Transition, error) {
	return order.Transition{}, order.ErrInternal
}

func (l *ledger) place(id order.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders[id] = true
}

func (l *ledger) setBefore(f func(order.PaymentMessage) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = f
}

func (l *ledger) callCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

func (l *ledger) appliedCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.applied)
}

// once tells whether each of the orders has had its effect, and had it once.
func (l *ledger) once(ids ...order.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if l.applied[id] != 1 {
			return false
		}
	}
	return true
}

// scene is a topic on a Redis.
type scene struct {
	t      *testing.T
	server *testserver.RedisServer
	redis  *redis.Client
	topic  string

	claimAfter time.Duration
}

func newScene(t *testing.T, server *testserver.RedisServer) *scene {
	t.Helper()
	return &scene{t: t, server: server, redis: server.Client(t), topic: "payments-" + rand.Text(), claimAfter: claimAfter}
}

func (s *scene) parkedTopic() string { return s.topic + "-parked" }

// open connects as a process would.
func (s *scene) open(instance string) (message.Subscriber, message.Publisher) {
	s.t.Helper()
	subscriber, publisher, err := consumer.Open(consumer.BrokerOptions{
		Kind: consumer.Redis, Group: group, Logger: slog.New(slog.DiscardHandler),
		Redis: &consumer.RedisOptions{
			Client:   &redis.UniversalOptions{Addrs: []string{s.server.Addr}},
			Instance: instance, ClaimAfter: s.claimAfter, ClaimInterval: 10 * time.Millisecond,
		},
	})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, publisher.Close()) })
	return subscriber, publisher
}

func (s *scene) options(lifecycle order.Lifecycle, instance string) consumer.Options {
	s.t.Helper()
	subscriber, publisher := s.open(instance)
	return consumer.Options{
		Subscriber: subscriber, Topic: s.topic, Name: group, Lifecycle: lifecycle,
		Parker: consumer.TopicParker{Publisher: publisher, Topic: s.parkedTopic(), Now: time.Now},
		// One that a busy machine does not park in time is given back, and parked twice.
		Workers: 2, MaxDeliveries: 3, Timeout: max(time.Second, s.claimAfter/5),
		RetryDelay: 5 * time.Millisecond, MaxRetryDelay: 20 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	}
}

func (s *scene) consume(o consumer.Options) (stop func()) {
	s.t.Helper()
	return consume(s.t, o)
}

// consume runs a consumer until stop is called, or the test ends.
func consume(t *testing.T, o consumer.Options) (stop func()) {
	t.Helper()
	c, err := consumer.New(o)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- c.Run(context.Background()) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			require.NoError(t, c.Close())
			require.NoError(t, <-done)
		})
	}
	t.Cleanup(stop)
	return stop
}

// publish writes a message as Watermill's publisher does.
func (s *scene) publish(id string, body string) {
	s.t.Helper()
	_, publisher := s.open("publisher")
	require.NoError(s.t, publisher.Publish(s.topic, message.NewMessage(id, []byte(body))))
}

// add writes an entry as any client can, and returns its name.
func (s *scene) add(fields ...any) string {
	s.t.Helper()
	id, err := s.redis.XAdd(s.t.Context(), &redis.XAddArgs{Stream: s.topic, Values: fields}).Result()
	require.NoError(s.t, err)
	return id
}

// settled tells whether nothing is left to deliver or to acknowledge.
func (s *scene) settled() bool {
	groups, err := s.redis.XInfoGroups(s.t.Context(), s.topic).Result()
	return err == nil && len(groups) == 1 && groups[0].Lag == 0 && groups[0].Pending == 0
}

func (s *scene) parked() []*message.Message {
	s.t.Helper()
	entries, err := s.redis.XRange(s.t.Context(), s.parkedTopic(), "-", "+").Result()
	require.NoError(s.t, err)
	var messages []*message.Message
	for _, entry := range entries {
		messages = append(messages, unmarshal(s.t, entry.Values))
	}
	return messages
}

func (s *scene) eventually(what string, condition func() bool) {
	s.t.Helper()
	require.Eventually(s.t, condition, patience, tick, what)
}

func newID() order.ID { return order.NewID(time.Now()) }

// body is the event that an order was paid.
func body(id order.ID) string {
	return fmt.Sprintf(`{"type":"payment.succeeded","data":{"order_id":%q,"amount":"19.90","provider_reference":"ref-%s"}}`, id, id)
}

// value returns what a counter with one label counts.
func value(t *testing.T, o consumer.Options, name, label string) int {
	t.Helper()
	families, err := o.Registerer.(prometheus.Gatherer).Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && metric.GetLabel()[0].GetValue() == label {
				return int(metric.GetCounter().GetValue())
			}
		}
	}
	require.Fail(t, "no such counter", "%s %s", name, label)
	return 0
}
