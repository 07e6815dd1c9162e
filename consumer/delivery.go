package consumer

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// delivery is what a subscriber that keeps count tells of one delivery, and
// what it is asked for when the message is given back. It travels in the
// message's context, where no publisher can forge it.
type delivery struct {
	count int64  // of deliveries that count, this one included
	again bool   // it was delivered before, to somebody who has not settled it
	entry string // the broker's own name for the message
	fault error  // why the entry is no message

	delay     time.Duration // before the next delivery
	uncounted bool          // this delivery is not to count
}

type deliveryKey struct{}

func (d *delivery) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, deliveryKey{}, d)
}

// deliveryOf returns nil for subscribers that keep no count.
func deliveryOf(m *message.Message) *delivery {
	d, _ := m.Context().Value(deliveryKey{}).(*delivery)
	return d
}
