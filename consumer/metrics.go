package consumer

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncegate/oncegate/order"
)

// effectDuplicate is the effect of a message that had been dealt with before.
const effectDuplicate = "duplicate"

// metrics of a consumer, children resolved once.
type metrics struct {
	messages     map[string]prometheus.Counter
	redeliveries map[Reason]prometheus.Counter
	parked       map[Reason]prometheus.Counter
	refundsOwed  prometheus.Counter
	subscribed   prometheus.Gauge
	backlog      *backlogGauges // nil when the broker does not tell
}

// backlogGauges show what a broker still holds.
type backlogGauges struct{ lag, pending, lost, answers prometheus.Gauge }

// registration registers collectors and keeps the errors.
type registration struct {
	registerer prometheus.Registerer
	err        error
}

func (r *registration) add(c prometheus.Collector) {
	r.err = errors.Join(r.err, r.registerer.Register(c))
}

func (r *registration) counters(name, help, label string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	r.add(c)
	return c
}

func (r *registration) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	r.add(g)
	return g
}

func newMetrics(registerer prometheus.Registerer, tellsBacklog bool) (*metrics, error) {
	r := &registration{registerer: registerer}
	messages := r.counters("oncegate_consumer_messages_total", "Messages that the ledger dealt with, by what they came to. The parked ones are those of oncegate_consumer_parked_total with the reason id_reused.", "effect")
	redeliveries := r.counters("oncegate_consumer_redeliveries_total", "Deliveries given back to be tried again, by reason.", "reason")
	parked := r.counters("oncegate_consumer_parked_total", "Messages given up, by reason: published to the topic for parked messages, or, with the reason id_reused, kept by the ledger in parked_messages.", "reason")
	m := &metrics{
		messages:     map[string]prometheus.Counter{effectDuplicate: messages.WithLabelValues(effectDuplicate)},
		redeliveries: map[Reason]prometheus.Counter{},
		parked:       map[Reason]prometheus.Counter{},
		refundsOwed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "oncegate_consumer_refunds_owed_total", Help: "Payments taken that their order cannot use.",
		}),
		subscribed: r.gauge("oncegate_consumer_subscribed", "Workers that have a subscription."),
	}
	r.add(m.refundsOwed)
	for _, effect := range []order.Effect{
		order.Applied, order.AlreadyThere, order.Stale, order.Impossible, order.Noted, order.WrongAmount, order.Parked,
	} {
		m.messages[string(effect)] = messages.WithLabelValues(string(effect))
	}
	for _, reason := range []Reason{Undecodable, OrderNotFound, Refused, Exhausted, IDReused} {
		m.parked[reason] = parked.WithLabelValues(string(reason))
	}
	for _, reason := range []Reason{unavailable, OrderNotFound, Refused, unparkable, stopping} {
		m.redeliveries[reason] = redeliveries.WithLabelValues(string(reason))
	}
	if tellsBacklog {
		m.backlog = &backlogGauges{
			lag:     r.gauge("oncegate_consumer_lag", "Messages in the topic that were never delivered; -1 when the broker cannot tell."),
			pending: r.gauge("oncegate_consumer_pending", "Messages delivered and not acknowledged."),
			answers: r.gauge("oncegate_consumer_broker_answers", "1 while the broker tells what it still holds, 0 while it does not."),
			lost:    r.gauge("oncegate_consumer_lost", "Messages that vanished from the topic before they were acknowledged, since the start."),
		}
	}
	if r.err != nil {
		return nil, fmt.Errorf("consumer: metrics: %w", r.err)
	}
	return m, nil
}
