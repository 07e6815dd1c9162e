package consumer

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// newHealthy is a broker of Kafka that answers.
func newHealthy(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1), kfake.SeedTopics(1, "payments"))...)
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return cluster
}

func openHealthy(t *testing.T, o *KafkaOptions) (message.Subscriber, message.Publisher) {
	t.Helper()
	s, publisher, err := Open(BrokerOptions{Kind: Kafka, Group: "g", Logger: slog.New(slog.DiscardHandler), Kafka: o})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, publisher.Close()) })
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, publisher
}

// Neither has anything to say for longer than one answer may take: not the broker
// to a member that joins while another has a message in hand, nor to an idle one.
func TestASubscriptionOutlivesASlowDivisionOfItsGroup(t *testing.T) {
	t.Parallel()
	broker := newHealthy(t)
	s, publisher := openHealthy(t, &KafkaOptions{Brokers: broker.ListenAddrs()})
	require.NoError(t, publisher.Publish("payments", message.NewMessage("evt_1", nil)))
	first, err := s.Subscribe(t.Context(), "payments")
	require.NoError(t, err)
	inHand, open := endsWithClosed(t, first)
	require.True(t, open)

	beats := make(chan struct{}, 100)
	broker.ControlKey(int16(kmsg.Heartbeat), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		select {
		case beats <- struct{}{}:
		default: // enough of them
		}
		return nil, nil, false
	})
	// so many that they last longer than an answer may take
	outlast := func(members int) {
		for range members * (2 + int(kafkaTimeout/(&KafkaOptions{}).sarama().Consumer.Group.Heartbeat.Interval)) {
			endsWith(t, beats, "no heartbeat comes")
		}
	}
	second, joined := (<-chan *message.Message)(nil), make(chan error, 1)
	joins := make(chan struct{})
	var once sync.Once
	broker.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		once.Do(func() { close(joins) })
		return nil, nil, false
	})
	go func() {
		var err error
		second, err = s.Subscribe(t.Context(), "payments")
		joined <- err
	}()
	endsWith(t, joins, "the second does not join")
	outlast(1)
	inHand.Ack()
	require.NoError(t, endsWith(t, joined, "the second is not let in"))
	outlast(2)
	require.NoError(t, publisher.Publish("payments", message.NewMessage("evt_2", nil)))
	select {
	case m, open := <-first:
		require.True(t, open, "the first has ended")
		m.Ack()
	case m, open := <-second:
		require.True(t, open, "the second has ended")
		m.Ack()
	case <-time.After(ends):
		require.Fail(t, "nobody is given the next message")
	}
}

// A broker before 2.4 does not know the first version of the question which
// versions it knows that the client asks in, and says so in the oldest.
func TestAnOldBrokerIsUnderstood(t *testing.T) {
	t.Parallel()
	const unsupportedVersion = 35
	for name, opts := range map[string][]kfake.Opt{
		"without a log-in": nil,
		"with one":         {kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "p")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := newHealthy(t, opts...)
			o := &KafkaOptions{Brokers: broker.ListenAddrs()}
			if opts != nil {
				o.Username, o.Password = "u", "p"
			}
			refused := make(chan struct{})
			var once sync.Once
			broker.ControlKey(int16(kmsg.ApiVersions), func(asked kmsg.Request) (kmsg.Response, error, bool) {
				broker.KeepControl()
				if asked.GetVersion() <= 2 {
					return nil, nil, false
				}
				once.Do(func() { close(refused) })
				answer := kmsg.NewPtrApiVersionsResponse()
				answer.ErrorCode = unsupportedVersion
				return answer, nil, true
			})
			s, publisher := openHealthy(t, o)
			require.NoError(t, publisher.Publish("payments", message.NewMessage("evt_1", nil)))
			messages, err := s.Subscribe(t.Context(), "payments")
			require.NoError(t, err)
			m, open := endsWithClosed(t, messages)
			require.True(t, open)
			require.Equal(t, "evt_1", m.UUID)
			m.Ack()
			endsWith(t, refused, "it was not asked in a version it does not know")
		})
	}
}
