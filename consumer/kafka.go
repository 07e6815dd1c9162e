package consumer

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

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
	logger   *slog.Logger
}

// Subscribe implements [message.Subscriber]. It joins the group as a member of
// its own, and returns when that has its share of the partitions, which may be
// none. Each of them delivers one message at a time. The subscription ends when
// the broker is lost.
func (s *kafkaSubscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	group, err := sarama.NewConsumerGroup(s.brokers, s.group, s.settings)
	if err != nil {
		end()
		return nil, fmt.Errorf("open the group %s: %w", s.group, err)
	}
	r := &kafkaReader{s: s, out: make(chan *message.Message), joined: make(chan struct{})}
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
}

var _ sarama.ConsumerGroupHandler = (*kafkaReader)(nil)

// run reads from session to session until ctx ends or one does not come about,
// and leaves the group.
func (r *kafkaReader) run(ctx context.Context, group sarama.ConsumerGroup, topic string) (err error) {
	var telling sync.WaitGroup
	telling.Go(func() {
		for err := range group.Errors() {
			r.s.logger.WarnContext(ctx, "a fault in the consumer group", "topic", topic, "error", err)
		}
	})
	for err == nil {
		if err = group.Consume(ctx, []string{topic}, r); err == nil {
			err = ctx.Err()
		}
	}
	if cerr := group.Close(); cerr != nil && ctx.Err() == nil {
		r.s.logger.DebugContext(ctx, "the consumer group was not left in order", "error", cerr)
	}
	telling.Wait()
	return err
}

// Setup implements [sarama.ConsumerGroupHandler].
func (r *kafkaReader) Setup(sarama.ConsumerGroupSession) error {
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
