package consumer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/oncegate/oncegate/order"
)

// Reason says why a message was given up.
type Reason string

// The reasons.
const (
	// Undecodable: it is not a payment event. Final at the first delivery.
	Undecodable Reason = "undecodable"
	// OrderNotFound: its order was not there at any delivery.
	OrderNotFound Reason = "order_not_found"
	// Refused: the ledger refused it at every delivery, for a fault of the
	// deployment.
	Refused Reason = "refused"
	// Exhausted: its deliveries did not come to an end, as when each of them
	// took its process down. It is not tried again.
	Exhausted Reason = "deliveries_exhausted"
	// IDReused: its id belongs to another content. The ledger keeps it, not
	// the parker.
	IDReused Reason = "id_reused"
)

// unavailable is why a message is given back that is never given up.
const unavailable Reason = "unavailable"

// reasonOf sorts an error of the lifecycle. What is not known to be final is
// taken for an outage: it is tried again for ever rather than lost.
func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, order.ErrNotFound):
		return OrderNotFound
	case errors.Is(err, order.ErrInternal):
		return Refused
	default:
		return unavailable
	}
}

// Parking is what is known of a message that is given up.
type Parking struct {
	Reason     Reason
	Detail     string // in words
	Topic      string // where it came from
	Entry      string // the broker's name for it, where there is one
	Consumer   string
	MessageID  string
	Deliveries int64
}

// Parker keeps messages that can never succeed. A message is acknowledged only
// after Park has returned nil, so it may be parked more than once.
type Parker interface {
	Park(ctx context.Context, m *message.Message, p Parking) error
}

// Metadata of parked messages.
const (
	ParkedReasonKey     = "parked_reason"
	ParkedDetailKey     = "parked_detail"
	ParkedTopicKey      = "parked_topic"
	ParkedEntryKey      = "parked_entry"
	ParkedConsumerKey   = "parked_consumer"
	ParkedDeliveriesKey = "parked_deliveries"
	ParkedAtKey         = "parked_at"
)

// TopicParker publishes parked messages, as they came and with the reason in
// their metadata, to a topic. All fields are required.
type TopicParker struct {
	Publisher message.Publisher
	Topic     string
	Now       func() time.Time
}

// Park implements [Parker].
func (t TopicParker) Park(ctx context.Context, m *message.Message, p Parking) error {
	parked := m.Copy()
	parked.SetContext(ctx)
	// Watermill's publishers refuse metadata of the name that they keep for
	// themselves, and such a message would never leave its topic.
	delete(parked.Metadata, redisstream.UUIDHeaderKey)
	for key, value := range map[string]string{
		MessageIDKey:        p.MessageID,
		ParkedReasonKey:     string(p.Reason),
		ParkedDetailKey:     p.Detail,
		ParkedTopicKey:      p.Topic,
		ParkedEntryKey:      p.Entry,
		ParkedConsumerKey:   p.Consumer,
		ParkedDeliveriesKey: strconv.FormatInt(p.Deliveries, 10),
		ParkedAtKey:         t.Now().UTC().Format(order.TimeFormat),
	} {
		if value != "" {
			parked.Metadata.Set(key, value)
		}
	}
	if err := t.Publisher.Publish(t.Topic, parked); err != nil {
		return fmt.Errorf("publish to %s: %w", t.Topic, err)
	}
	return nil
}
