package consumer

import (
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// muting is a broker of Kafka that falls silent, with all its connections open.
type muting struct {
	*kfake.Cluster
	due    atomic.Bool   // it answers until then
	silent chan struct{} // closed once it is
}

// newMuting falls silent at the first request of a kind once that is due.
func newMuting(t *testing.T, at kmsg.Key) *muting {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "payments"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	m := &muting{Cluster: cluster, silent: make(chan struct{})}
	speak := make(chan struct{})
	t.Cleanup(func() { close(speak) })
	var once sync.Once
	m.ControlKey(int16(at), func(kmsg.Request) (kmsg.Response, error, bool) {
		if !m.due.Load() {
			return nil, nil, false
		}
		once.Do(func() { close(m.silent) })
		<-speak // which holds up all requests
		return nil, errors.New("too late"), true
	})
	return m
}

func (m *muting) subscriber(t *testing.T) *kafkaSubscriber {
	t.Helper()
	s, publisher, err := Open(BrokerOptions{
		Kind: Kafka, Group: "g", Logger: slog.New(slog.DiscardHandler), Kafka: &KafkaOptions{Brokers: m.ListenAddrs()},
	})
	require.NoError(t, err)
	require.NoError(t, publisher.Close())
	subscriber, ok := s.(*kafkaSubscriber)
	require.True(t, ok)
	return subscriber
}

// ends is how long these tests wait for what must end: less than the client
// would wait for one answer.
const ends = kafkaHandover

func endsWith[T any](t *testing.T, from <-chan T, what string) (it T) {
	t.Helper()
	select {
	case it = <-from:
	case <-time.After(ends):
		require.Fail(t, what)
	}
	return it
}

func TestAnEndDoesNotWaitForAGroupThatAMemberJoins(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]kmsg.Key{
		"metadata": kmsg.Metadata, "coordinator": kmsg.FindCoordinator, "join": kmsg.JoinGroup, "sync": kmsg.SyncGroup,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := newMuting(t, at)
			broker.due.Store(true)
			s := broker.subscriber(t)
			joined := make(chan error, 1)
			go func() { _, err := s.Subscribe(t.Context(), "payments"); joined <- err }()
			endsWith(t, broker.silent, "it never comes so far")
			closed := make(chan error, 1)
			go func() { closed <- s.Close() }()
			require.NoError(t, endsWith(t, closed, "the end waits"))
			require.Error(t, endsWith(t, joined, "the subscription waits"))
		})
	}
}

func TestAnEndDoesNotWaitForABrokerThatFellSilent(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]kmsg.Key{"heartbeat": kmsg.Heartbeat, "leave": kmsg.LeaveGroup} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := newMuting(t, at)
			s := broker.subscriber(t)
			messages, err := s.Subscribe(t.Context(), "payments")
			require.NoError(t, err)
			broker.due.Store(true) // the first heartbeat may be there before the member is
			if at == kmsg.Heartbeat {
				endsWith(t, broker.silent, "no heartbeat comes")
			}
			closed := make(chan error, 1)
			go func() { closed <- s.Close() }()
			require.NoError(t, endsWith(t, closed, "the end waits"))
			_, open := <-messages
			require.False(t, open)
		})
	}
}

// A heartbeat is answered at once, or not at all; the client would ask again, and
// whether it is still understood, and who the coordinator is.
func TestASilentCoordinatorEndsTheSubscription(t *testing.T) {
	t.Parallel()
	broker := newMuting(t, kmsg.Heartbeat)
	s := broker.subscriber(t)
	messages, err := s.Subscribe(t.Context(), "payments")
	require.NoError(t, err)
	broker.due.Store(true)
	endsWith(t, broker.silent, "no heartbeat comes")
	_, open := endsWithClosed(t, messages)
	require.False(t, open)
	require.NoError(t, s.Close())
}

func endsWithClosed(t *testing.T, messages <-chan *message.Message) (m *message.Message, open bool) {
	t.Helper()
	select {
	case m, open = <-messages:
	case <-time.After(ends):
		require.Fail(t, "it waits for the silent broker")
	}
	return m, open
}

// coordinated is a client that knows its coordinator.
type coordinated struct{ sarama.Client }

func (coordinated) Coordinator(string) (*sarama.Broker, error) {
	return sarama.NewBroker("one:9092"), nil
}

// Who joins is answered when the last of the group has let go.
func TestAnAnswerMayTakeItsTimeWhileAMemberJoins(t *testing.T) {
	t.Parallel()
	s := &kafkaSubscriber{settings: (&KafkaOptions{}).sarama(), timeout: kafkaTimeout}
	r := &kafkaReader{s: s, joined: make(chan struct{}), client: coordinated{}}
	r.wires = &wires{readLimit: r.readLimit}
	now := time.Now()
	require.WithinDuration(t, now.Add(kafkaTimeout), r.readLimit(now), 0)
	for _, strategy := range r.settings().Consumer.Group.Rebalance.GroupStrategies {
		require.Equal(t, sarama.RangeBalanceStrategyName, strategy.Name())
	}
	require.False(t, r.readLimit(now).Before(now.Add(kafkaHandover+kafkaTimeout)))
	conn, err := r.wires.Dial("tcp", silent(t))
	require.NoError(t, err)
	defer r.wires.close()
	require.NoError(t, conn.SetReadDeadline(now.Add(time.Hour)))
	heartbeat := make(chan error, 1)
	go func() { _, err := conn.Read(make([]byte, 1)); heartbeat <- err }()
	s.timeout = time.Millisecond
	require.True(t, r.needs("two:9092"), "who coordinates it is not known yet")
	require.NoError(t, r.Setup(nil))
	require.True(t, r.needs("one:9092"))
	require.False(t, r.needs("two:9092"), "it may lead some partitions")
	require.WithinDuration(t, now.Add(s.timeout), r.readLimit(now), 0)
	require.ErrorIs(t, <-heartbeat, os.ErrDeadlineExceeded, "one that had begun, too")
	require.NotEqual(t, r.settings(), s.settings, "each member has settings of its own")
}

func TestFaultsThatLoseTheBroker(t *testing.T) {
	t.Parallel()
	require.True(t, brokerLost(errors.New("read tcp: i/o timeout")))
	require.True(t, brokerLost(sarama.ErrOutOfBrokers))
	require.False(t, brokerLost(sarama.ErrNotCoordinatorForConsumer), "it answers")
	require.False(t, brokerLost(&sarama.ConsumerError{Topic: "payments", Err: errors.New("i/o timeout")}), "one partition")
}
