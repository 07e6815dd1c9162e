package consumer

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncegate/oncegate/order"
)

// maxNameLen is the width of the column that the name is stored in.
const maxNameLen = 64

// maxWorkers bounds the subscriptions of a consumer, and so its connections.
const maxWorkers = 1024

// maxOutageDelay bounds how long a worker holds a message back while the ledger
// is unavailable.
const maxOutageDelay = 10 * time.Second

// Options are what a [Consumer] is made of.
type Options struct {
	// Subscriber delivers the messages of Topic. Both are required. The
	// consumer closes the subscriber.
	Subscriber message.Subscriber
	Topic      string
	// Name is who deduplicates: a message is dealt with once per name. It must
	// stay the same for as long as messages may come again. 1 to 64 visible
	// ASCII characters. Required.
	Name string
	// Lifecycle gives the events their effect. Required.
	Lifecycle order.Lifecycle
	// Parker keeps what can never succeed. Required.
	Parker Parker

	// Workers handle messages side by side, 1024 at most. Default 4.
	Workers int
	// MaxDeliveries is after how many deliveries a message is parked whose
	// order is not there or which the ledger refuses. Default 10. Deliveries
	// that met an unavailable ledger do not count.
	MaxDeliveries int
	// Timeout bounds one attempt at one message, and one attempt to park it.
	// Default 10 s.
	Timeout time.Duration
	// RetryDelay (default 1 s) is the wait before the second delivery; it
	// doubles from delivery to delivery up to MaxRetryDelay (default 1 min).
	RetryDelay, MaxRetryDelay time.Duration

	Logger     *slog.Logger          // required
	Registerer prometheus.Registerer // default: a registry of its own
}

func (o *Options) setDefaults() error {
	switch {
	case o.Subscriber == nil, o.Lifecycle == nil, o.Parker == nil, o.Logger == nil:
		return errors.New("consumer: a subscriber, a lifecycle, a parker and a logger are required")
	case o.Topic == "":
		return errors.New("consumer: a topic is required")
	case !validName(o.Name):
		return fmt.Errorf("consumer: the name must be 1 to %d visible ASCII characters", maxNameLen)
	}
	setDefault(&o.Workers, 4)
	setDefault(&o.MaxDeliveries, 10)
	setDefault(&o.Timeout, 10*time.Second)
	setDefault(&o.RetryDelay, time.Second)
	setDefault(&o.MaxRetryDelay, time.Minute)
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	return o.check()
}

func (o *Options) check() error {
	if o.Workers > maxWorkers {
		return fmt.Errorf("consumer: the workers (%d) must not be more than %d", o.Workers, maxWorkers)
	}
	if o.Workers < 1 || o.MaxDeliveries < 1 || o.Timeout < 0 {
		return errors.New("consumer: workers, max deliveries and timeout must be above zero")
	}
	if o.RetryDelay < 0 || o.RetryDelay > o.MaxRetryDelay {
		return fmt.Errorf("consumer: the retry delay (%v) must not be above the max retry delay (%v)", o.RetryDelay, o.MaxRetryDelay)
	}
	if s, ok := o.Subscriber.(interface{ patience() time.Duration }); ok {
		return o.checkPatience(s.patience())
	}
	return nil
}

// checkPatience compares with how long a message may be in hand.
func (o *Options) checkPatience(limit time.Duration) error {
	// A message that is held longer is given to somebody else, who then works
	// on it at the same time: right all the same, but a delivery too many.
	if held := 2*o.Timeout + o.outageDelay(); held > limit {
		return fmt.Errorf("consumer: a message may be held for %v (two timeouts and a delay), and is claimed by others after %v", held, limit)
	}
	if o.MaxRetryDelay > limit { // it is delivered again by then
		return fmt.Errorf("consumer: the max retry delay (%v) must not be above the time after which messages are claimed (%v)", o.MaxRetryDelay, limit)
	}
	return nil
}

func (o *Options) outageDelay() time.Duration { return min(o.MaxRetryDelay, maxOutageDelay) }

func validName(s string) bool {
	if s == "" || len(s) > maxNameLen {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
