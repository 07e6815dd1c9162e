//go:build unix

package consumer_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/oncegate/oncegate/consumer"
	"github.com/oncegate/oncegate/order"
)

// partition is a topic of one partition on a broker of Kafka.
type partition struct {
	t        *testing.T
	cluster  *kfake.Cluster
	producer sarama.SyncProducer
	admin    sarama.ClusterAdmin
}

const (
	kafkaTopic  = "payments"
	kafkaParked = "payments.parked"
	// roomForMuch is how large a message these topics take, in bytes.
	roomForMuch = 8 << 20
)

func newPartition(t *testing.T) *partition {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "8388608"}),
		kfake.SeedTopics(1, kafkaTopic, kafkaParked))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	p := &partition{t: t, cluster: cluster}
	p.producer, err = sarama.NewSyncProducer(cluster.ListenAddrs(), producing())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.producer.Close()) })
	p.admin, err = sarama.NewClusterAdmin(cluster.ListenAddrs(), producing())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.admin.Close()) })
	return p
}

func producing() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.V2_1_0_0
	c.Producer.Return.Successes = true
	c.Producer.MaxMessageBytes = roomForMuch
	return c
}

// publish writes a record as any client can.
func (p *partition) publish(id, body string) {
	p.t.Helper()
	_, _, err := p.producer.SendMessage(&sarama.ProducerMessage{
		Topic: kafkaTopic, Value: sarama.StringEncoder(body),
		Headers: []sarama.RecordHeader{{Key: []byte(consumer.MessageIDKey), Value: []byte(id)}},
	})
	require.NoError(p.t, err)
}

func (p *partition) options(l order.Lifecycle) consumer.Options {
	p.t.Helper()
	subscriber, publisher, err := consumer.Open(consumer.BrokerOptions{
		Kind: consumer.Kafka, Group: group, Logger: slog.New(slog.DiscardHandler),
		Kafka: &consumer.KafkaOptions{Brokers: p.cluster.ListenAddrs()},
	})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { require.NoError(p.t, publisher.Close()) })
	return consumer.Options{
		Subscriber: subscriber, Topic: kafkaTopic, Name: group, Lifecycle: l,
		Parker: consumer.TopicParker{Publisher: publisher, Topic: kafkaParked, Now: time.Now},
		// A busy machine may take longer than a second to park a message, which is
		// then given back and handled once more.
		Workers: 1, MaxDeliveries: 3, Timeout: patience,
		RetryDelay: 5 * time.Millisecond, MaxRetryDelay: 20 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	}
}

// committed tells whether n offsets, and no more, are acknowledged.
func (p *partition) committed(n int64) func() bool {
	return func() bool {
		offsets, err := p.admin.ListConsumerGroupOffsets(group, map[string][]int32{kafkaTopic: {0}})
		if err != nil {
			return false
		}
		block := offsets.GetBlock(kafkaTopic, 0)
		return block != nil && block.Offset == n
	}
}

// members counts those of the group once they have divided the partition.
func (p *partition) members() int {
	if g := p.group(); g.State == "Stable" {
		return len(g.Members)
	}
	return 0
}

func (p *partition) state() string { return p.group().State }

// group is empty while the broker does not tell.
func (p *partition) group() *sarama.GroupDescription {
	groups, err := p.admin.DescribeConsumerGroups([]string{group})
	if err != nil || len(groups) != 1 {
		return &sarama.GroupDescription{}
	}
	return groups[0]
}

// parked reads the records of the topic for parked messages.
func (p *partition) parked() []*sarama.ConsumerMessage {
	p.t.Helper()
	info := p.cluster.PartitionInfo(kafkaParked, 0)
	c, err := sarama.NewConsumer(p.cluster.ListenAddrs(), producing())
	require.NoError(p.t, err)
	defer func() { require.NoError(p.t, c.Close()) }()
	reader, err := c.ConsumePartition(kafkaParked, 0, sarama.OffsetOldest)
	require.NoError(p.t, err)
	defer func() { require.NoError(p.t, reader.Close()) }()
	var records []*sarama.ConsumerMessage
	for int64(len(records)) < info.HighWatermark {
		records = append(records, <-reader.Messages())
	}
	return records
}

func (p *partition) eventually(what string, condition func() bool) {
	p.t.Helper()
	require.Eventually(p.t, condition, patience, tick, what)
}

func header(m *sarama.ConsumerMessage, key string) string {
	for _, h := range m.Headers {
		if string(h.Key) == key {
			return string(h.Value)
		}
	}
	return ""
}

// Its effect is committed, and whoever had it has died before a word was said
// and before its offset was committed.
func TestARefundIsToldByTheHeirOfAPartition(t *testing.T) {
	t.Parallel()
	p, id := newPartition(t), newID()
	l := newLedger(id)
	for _, m := range []string{"evt_1", "evt_2"} {
		_, err := l.Apply(t.Context(), order.PaymentMessage{Consumer: group, MessageID: m, OrderID: id, Digest: contentOf(t, id)})
		require.NoError(t, err)
	}
	p.publish("evt_2", body(id))
	o := p.options(l)
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	stop := consume(t, o)
	p.eventually("it is acknowledged", p.committed(1))
	p.publish("evt_2", body(id)) // published twice
	p.eventually("it is acknowledged again", p.committed(2))
	stop()
	require.Equal(t, [2]int{1, 1}, refundsTold(t, o, &log))
	require.Equal(t, 2, value(t, o, "oncegate_consumer_messages_total", "duplicate"))
}

// The order of a message is not there, and a second member wants its share.
func TestAMessageThatWaitsDoesNotKeepItsPartition(t *testing.T) {
	t.Parallel()
	p := newPartition(t)
	l := newLedger()
	p.publish("evt_1", body(newID()))
	first := p.options(l)
	first.MaxDeliveries, first.RetryDelay, first.MaxRetryDelay = 1000, time.Hour, time.Hour
	consume(t, first)
	p.eventually("it waits", func() bool { return l.callCount() == 1 })

	second := newLedger()
	o := p.options(second)
	o.MaxDeliveries = 1000
	stop := consume(t, o)
	p.eventually("it has joined", func() bool { return p.members() == 2 })
	p.eventually("somebody is given it", func() bool { return l.callCount()+second.callCount() > 1 })
	stop()
	require.False(t, p.committed(1)())
}

func TestWhatWasHandledBeforeTheEndIsAcknowledged(t *testing.T) {
	t.Parallel()
	p, id := newPartition(t), newID()
	l := newLedger(id)
	arrived, release := make(chan struct{}), make(chan struct{})
	l.setBefore(func(order.PaymentMessage) error { close(arrived); <-release; return nil })
	p.publish("evt_1", body(id))
	c, err := consumer.New(p.options(l))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	<-arrived
	cancel()
	close(release)
	require.NoError(t, <-done)
	require.NoError(t, c.Close())
	require.True(t, l.once(id))
	require.True(t, p.committed(1)())
	require.Equal(t, "Empty", p.state(), "it has left")
}

func TestWhatCannotSucceedHoldsUpItsPartitionUntilItIsParked(t *testing.T) {
	t.Parallel()
	p, missing, there := newPartition(t), newID(), newID()
	l := newLedger(there)
	o := p.options(l)
	p.publish("evt_missing", body(missing))
	p.publish("evt_large", strings.Repeat("x", 2<<20))
	p.publish("evt_there", body(there))
	stop := consume(t, o)
	p.eventually("all are acknowledged", p.committed(3))
	stop()
	require.True(t, l.once(there))
	require.Equal(t, 4, l.callCount())
	parked := p.parked()
	require.Len(t, parked, 2)
	require.Equal(t, body(missing), string(parked[0].Value))
	require.Equal(t, "order_not_found", header(parked[0], consumer.ParkedReasonKey))
	require.Equal(t, "3", header(parked[0], consumer.ParkedDeliveriesKey))
	require.Equal(t, "0/0", header(parked[0], consumer.ParkedEntryKey))
	require.Equal(t, "undecodable", header(parked[1], consumer.ParkedReasonKey))
	require.Len(t, parked[1].Value, 2<<20)
	require.Equal(t, "0/1", header(parked[1], consumer.ParkedEntryKey))
}

// The group divides its partitions again while a message is in hand.
func TestAMessageInHandIsAcknowledgedAlthoughItsPartitionMovesOn(t *testing.T) {
	t.Parallel()
	p, id := newPartition(t), newID()
	l := newLedger(id)
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	l.setBefore(func(order.PaymentMessage) error { arrived <- struct{}{}; <-release; return nil })
	p.publish("evt_1", body(id))
	consume(t, p.options(l))
	<-arrived
	consume(t, p.options(l))
	p.eventually("the partition is to be divided again", func() bool { return p.state() == "PreparingRebalance" })
	// The answer to the first heartbeat says so; who sends another has read it.
	var beats atomic.Int64
	p.cluster.ControlKey(kmsg.Heartbeat.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		p.cluster.KeepControl()
		beats.Add(1)
		return nil, nil, false
	})
	p.eventually("the member knows it", func() bool { return beats.Load() >= 2 })
	close(release)
	p.eventually("it is acknowledged", p.committed(1))
	p.eventually("the partition is divided", func() bool { return p.members() == 2 })
	require.True(t, l.once(id))
	require.Equal(t, 1, l.callCount())
}

func TestAConsumerWithoutItsBrokerSaysSo(t *testing.T) {
	t.Parallel()
	p, id := newPartition(t), newID()
	l := newLedger(id)
	c, err := consumer.New(p.options(l))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context()) }()
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.NoError(t, <-done)
	})
	p.eventually("it reads", func() bool { return c.Health() == nil })
	p.cluster.Close()
	p.eventually("it says that it does not", func() bool { return c.Health() != nil })
}
