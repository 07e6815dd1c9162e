package ordertest

import (
	"sync"
	"time"

	"github.com/oncegate/oncegate/order"
)

// Observed is one call of [order.Observer.Decided].
type Observed struct {
	Answer order.Answer
	Err    error
	Took   time.Duration
}

// Observer records what Intake tells it. The zero value is ready to use.
type Observer struct {
	mu        sync.Mutex
	decided   []Observed
	anomalies []order.Anomaly
	ages      []time.Duration
}

var _ order.Observer = (*Observer)(nil)

// Decided implements [order.Observer].
func (o *Observer) Decided(a order.Answer, err error, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.decided = append(o.decided, Observed{a, err, took})
}

// Noticed implements [order.Observer].
func (o *Observer) Noticed(a order.Anomaly, age time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.anomalies, o.ages = append(o.anomalies, a), append(o.ages, age)
}

// Decisions returns what was decided so far, in order.
func (o *Observer) Decisions() []Observed {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]Observed(nil), o.decided...)
}

// Anomalies returns what was noticed so far, in order.
func (o *Observer) Anomalies() []order.Anomaly {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]order.Anomaly(nil), o.anomalies...)
}

// Ages returns the age that each of them was noticed with.
func (o *Observer) Ages() []time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]time.Duration(nil), o.ages...)
}
