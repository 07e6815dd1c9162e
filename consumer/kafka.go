package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
)

// kafkaSubscriber is a Watermill subscriber for a consumer group of Kafka.
type kafkaSubscriber struct {
	subscriptions
	brokers  []string
	group    string
	settings *sarama.Config
	timeout  time.Duration // for an answer that waits for nobody
	logger   *slog.Logger
}

// Subscribe implements [message.Subscriber]. It joins the group as a member of
// its own, and returns when that has its share of the partitions, which may be
// none. Each of them delivers one message at a time. The subscription ends when
// the coordinator of the group is lost, which a silent one is after some 10 s.
func (s *kafkaSubscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	r := &kafkaReader{s: s, out: make(chan *message.Message), joined: make(chan struct{})}
	r.wires = &wires{dialing: kafkaDialTimeout, readLimit: r.readLimit}
	// Until it has joined it has nothing to leave, and no answer is worth a wait.
	joining := context.AfterFunc(ctx, r.wires.close)
	defer joining()
	group, err := r.open()
	if err != nil {
		r.wires.close()
		end()
		return nil, fmt.Errorf("open the group %s: %w", s.group, err)
	}
	ended := make(chan error, 1)
	go func() {
		defer end()
		defer close(r.out)
		ended <- r.run(ctx, group, topic)
	}()
	select {
	case <-r.joined:
		return r.out, nil
	case err := <-ended:
		return nil, fmt.Errorf("join the group %s: %w", s.group, err)
	}
}

// Close ends all subscriptions. What was not settled goes to other members.
func (s *kafkaSubscriber) Close() error {
	s.end()
	return nil
}

// kafkaReader is one subscription.
type kafkaReader struct {
	s      *kafkaSubscriber
	out    chan *message.Message
	once   sync.Once
	joined chan struct{}
	wires  *wires
	client sarama.Client
	// coordinator is the address of who divides the group. Nil: it has not yet.
	coordinator atomic.Pointer[string]
	// patience is until when an answer may take its time, in Unix nanoseconds.
	patience atomic.Int64
}

var _ sarama.ConsumerGroupHandler = (*kafkaReader)(nil)

// open connects. Whoever closes the group closes the client, too.
func (r *kafkaReader) open() (group sarama.ConsumerGroup, err error) {
	if r.client, err = sarama.NewClient(r.s.brokers, r.settings()); err != nil {
		return nil, err
	}
	if group, err = sarama.NewConsumerGroupFromClient(r.s.group, r.client); err != nil {
		return nil, errors.Join(err, r.client.Close())
	}
	return group, nil
}

// settings are those of a member of its own.
func (r *kafkaReader) settings() *sarama.Config {
	c := *r.s.settings
	c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, r.wires
	strategies := make([]sarama.BalanceStrategy, 0, len(c.Consumer.Group.Rebalance.GroupStrategies))
	for _, strategy := range c.Consumer.Group.Rebalance.GroupStrategies {
		strategies = append(strategies, tellingStrategy{strategy, r.joins})
	}
	c.Consumer.Group.Rebalance.GroupStrategies = strategies
	return &c
}

// tellingStrategy tells when its member joins, for then it is asked for its name.
type tellingStrategy struct {
	sarama.BalanceStrategy
	joins func()
}

// Name implements [sarama.BalanceStrategy].
func (s tellingStrategy) Name() string {
	s.joins()
	return s.BalanceStrategy.Name()
}

// joins lets the answers of the broker take their time: it waits for the others
// of the group.
func (r *kafkaReader) joins() {
	r.patience.Store(time.Now().Add(kafkaHandover + r.s.timeout).UnixNano())
}

// readLimit is when a read that begins now counts as unanswered.
func (r *kafkaReader) readLimit(now time.Time) time.Time {
	return time.Unix(0, max(now.Add(r.s.timeout).UnixNano(), r.patience.Load()))
}

// part lets the client leave its group once ctx has ended, and then hangs up.
func (r *kafkaReader) part(ctx context.Context, left <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-left:
		return
	}
	limit := time.NewTimer(farewell)
	defer limit.Stop()
	select {
	case <-limit.C:
		r.wires.close()
	case <-left:
	}
}

// brokerLost tells whether a fault in the group is that its coordinator cannot be
// reached: the client would try to join there again, and wait.
func brokerLost(fault error) bool {
	var (
		partition *sarama.ConsumerError
		answer    sarama.KError
	)
	return !errors.As(fault, &partition) && !errors.As(fault, &answer)
}

// needs tells whether nothing goes on while a broker is silent: without another than
// the coordinator the partitions wait that it leads, and their group stays as it is.
func (r *kafkaReader) needs(addr string) bool {
	at := r.coordinator.Load()
	return at == nil || *at == addr
}

// run reads from session to session until ctx ends or one does not come about,
// and leaves the group.
func (r *kafkaReader) run(ctx context.Context, group sarama.ConsumerGroup, topic string) (err error) {
	reading, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	mind := func(fault error) {
		r.s.logger.WarnContext(ctx, "a fault in the consumer group", "topic", topic, "error", fault)
		if brokerLost(fault) {
			lose(fault)
		}
	}
	// The client would ask the coordinator again, for one thing after the other.
	r.wires.watch(func(addr string, fault error) {
		if r.needs(addr) {
			mind(fault)
		}
	})
	var aside sync.WaitGroup
	aside.Go(func() {
		for fault := range group.Errors() {
			mind(fault)
		}
	})
	left := make(chan struct{})
	aside.Go(func() { r.part(reading, left) })
	for err == nil {
		if err = group.Consume(reading, []string{topic}, r); err == nil {
			err = context.Cause(reading)
		}
		r.patience.Store(0)
	}
	lose(err)
	if cerr := errors.Join(group.Close(), r.client.Close()); cerr != nil && ctx.Err() == nil {
		r.s.logger.DebugContext(ctx, "the consumer group was not left in order", "error", cerr)
	}
	close(left)
	r.wires.close()
	aside.Wait()
	return err
}

// Setup implements [sarama.ConsumerGroupHandler].
func (r *kafkaReader) Setup(sarama.ConsumerGroupSession) error {
	// The client knows it, or else asks for it within its own limits.
	if broker, err := r.client.Coordinator(r.s.group); err == nil {
		addr := broker.Addr()
		r.coordinator.Store(&addr)
	}
	r.patience.Store(0)
	r.wires.hasten() // the first heartbeat is on its way
	r.once.Do(func() { close(r.joined) })
	return nil
}

// Cleanup implements [sarama.ConsumerGroupHandler].
func (*kafkaReader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim implements [sarama.ConsumerGroupHandler].
func (r *kafkaReader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	// What the partition held when it became ours may have been delivered before,
	// to somebody whose offset was not committed.
	end := claim.HighWaterMarkOffset()
	for record := range claim.Messages() {
		if !r.deliver(session, record, record.Offset < end) {
			break
		}
	}
	return nil
}

// deliver hands a record over until it is settled, and reports whether it was. At
// the end of the session the message in hand is waited for, and nothing is
// delivered any more: the partition goes to another member.
func (r *kafkaReader) deliver(session sarama.ConsumerGroupSession, record *sarama.ConsumerMessage, again bool) bool {
	for count := int64(1); session.Context().Err() == nil; {
		d := &delivery{count: count, again: again, entry: strconv.Itoa(int(record.Partition)) + "/" + strconv.FormatInt(record.Offset, 10)}
		m, err := kafka.DefaultMarshaler{}.Unmarshal(record)
		if err != nil {
			m, d.fault = message.NewMessage("", record.Value), err
		}
		m.SetContext(d.in(session.Context()))
		select {
		case r.out <- m:
		case <-session.Context().Done():
			return false
		}
		select {
		case <-m.Acked():
			// After the end of the session, too: it is committed as that is released.
			session.MarkMessage(record, "")
			return true
		case <-m.Nacked():
		case <-r.s.closing:
			return false
		}
		again = true
		if !d.uncounted {
			count++
		}
		pause(session.Context(), d.delay)
	}
	return false
}
