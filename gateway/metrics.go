package gateway

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncegate/oncegate/order"
)

// Metrics counts what [order.Intake] decides and what the listener answers. No
// label ever holds a user, a key or any other text of a caller. All children
// are made at the start: on the hot path nothing is looked up by name.
type Metrics struct {
	decided   [order.Accepted + 1][order.LayerProcess + 1]prometheus.Observer
	duplicate [order.LayerProcess + 1]prometheus.Counter
	undecided map[order.Outcome]prometheus.Counter
	refusals  map[order.RejectionCode]prometheus.Counter
	conflicts map[order.ConflictReason]prometheus.Counter
	keyReused prometheus.Counter
	retryAge  prometheus.Observer
	anomalies map[order.Anomaly]prometheus.Counter
	problems  map[Code]prometheus.Counter
	http      *prometheus.HistogramVec
	inFlight  prometheus.Gauge
	payments  map[order.Effect]prometheus.Counter
	refunds   prometheus.Counter
}

var _ order.Observer = (*Metrics)(nil)

// latencyBuckets begin where a replay from this process ends, in seconds.
func latencyBuckets() []float64 {
	return []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// ageBuckets reach from a double click to a week, in seconds.
func ageBuckets() []float64 {
	return []float64{.05, .25, 1, 5, 30, 120, 600, 3600, 6 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600}
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	decisions := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "oncegate_decision_duration_seconds", Buckets: latencyBuckets(),
		Help: "Time to decide a command, by the kind of the answer and the layer that gave it.",
	}, []string{"kind", "layer"})
	undecided := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oncegate_undecided_total",
		Help: "Commands that ended without an answer, by what is known of the order.",
	}, []string{"outcome"})
	retryAge := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "oncegate_retry_age_seconds", Buckets: ageBuckets(),
		Help: "Time from the first attempt with a key to a retry with it.",
	})
	duplicates := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oncegate_duplicates_total",
		Help: "Commands whose key was known already, by the layer that knew it.",
	}, []string{"layer"})
	refusals := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oncegate_refusals_total",
		Help: "Commands refused for a business reason, replays left out.",
	}, []string{"code"})
	conflicts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oncegate_conflicts_total",
		Help: "Keys that came with another content (key_reused), and rows whose business number is taken, by how.",
	}, []string{"reason"})
	anomalies := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oncegate_anomalies_total",
		Help: "Safe events that an operator should know of.",
	}, []string{"anomaly"})
	problems := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oncegate_http_problems_total",
		Help: "Problem documents by code, without the refusals that the ledger decides: those are decisions.",
	}, []string{"code"})
	payments := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oncegate_payment_callbacks_total",
		Help: "Payment callbacks by what they came to, duplicates left out.",
	}, []string{"effect"})
	m := &Metrics{
		payments: map[order.Effect]prometheus.Counter{},
		refunds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "oncegate_refunds_owed_total",
			Help: "Payments that the order could not use: somebody must pay them back. Told at least once: after a crash or by another gateway, a repeated callback counts again.",
		}),
		undecided: map[order.Outcome]prometheus.Counter{},
		refusals:  map[order.RejectionCode]prometheus.Counter{},
		conflicts: map[order.ConflictReason]prometheus.Counter{},
		keyReused: conflicts.WithLabelValues("key_reused"),
		retryAge:  retryAge,
		anomalies: map[order.Anomaly]prometheus.Counter{},
		problems:  map[Code]prometheus.Counter{},
		http: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "oncegate_http_request_duration_seconds", Buckets: latencyBuckets(),
			Help: "Time from the header of a request to the end of its answer, by what came of it.",
		}, []string{"route", "outcome"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "oncegate_http_in_flight_requests",
			Help: "API requests that hold a place: not while a body of up to 64 KiB is on its way here, or an answer on its way back.",
		}),
	}
	for _, c := range []prometheus.Collector{
		decisions, duplicates, undecided, refusals, conflicts, retryAge, anomalies, problems, m.http, m.inFlight, payments, m.refunds,
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register the gateway's metrics: %w", err)
		}
	}
	for kind := range m.decided {
		for layer := range m.decided[kind] {
			m.decided[kind][layer] = decisions.WithLabelValues(order.Kind(kind).String(), order.Layer(layer).String())
		}
	}
	for layer := range m.duplicate {
		m.duplicate[layer] = duplicates.WithLabelValues(order.Layer(layer).String())
	}
	for _, c := range []order.RejectionCode{order.InsufficientBalance, order.OutOfStock, order.OrderAlreadyExists} {
		m.refusals[c] = refusals.WithLabelValues(string(c))
	}
	for _, r := range []order.ConflictReason{order.Exists, order.ExistsDifferent, order.DuplicateInBatch} {
		m.conflicts[r] = conflicts.WithLabelValues(string(r))
	}
	for _, o := range []order.Outcome{order.OutcomeNotCommitted, order.OutcomeUnknown, order.OutcomeRejected} {
		m.undecided[o] = undecided.WithLabelValues(string(o))
	}
	for _, e := range []order.Effect{
		order.Applied, order.AlreadyThere, order.Stale, order.Impossible, order.Noted, order.WrongAmount, order.Parked,
	} {
		m.payments[e] = payments.WithLabelValues(string(e))
	}
	for _, a := range []order.Anomaly{order.FilterMissed, order.ReceiptLost, order.StaleMark} {
		m.anomalies[a] = anomalies.WithLabelValues(string(a))
	}
	for _, c := range Codes() {
		if c != CodeInsufficientBalance && c != CodeOutOfStock && c != CodeOrderExists && c != CodeExecutionFailed {
			m.problems[c] = problems.WithLabelValues(string(c))
		}
	}
	return m, nil
}

// Decided implements [order.Observer].
func (m *Metrics) Decided(a order.Answer, err error, took time.Duration) {
	if err != nil {
		if c := m.undecided[order.OutcomeOf(err)]; c != nil {
			c.Inc()
		}
		return
	}
	if int(a.Kind) >= len(m.decided) || int(a.Layer) >= len(m.duplicate) {
		return
	}
	m.decided[a.Kind][a.Layer].Observe(took.Seconds())
	switch a.Kind {
	case order.Replayed, order.InProgress:
		m.duplicate[a.Layer].Inc()
		m.retryAge.Observe(a.Age.Seconds())
	case order.Reused:
		m.duplicate[a.Layer].Inc()
		m.keyReused.Inc()
	case order.Rejected:
		m.refused(a.Rejection)
	case order.Created, order.Accepted:
	}
}

// refused counts why; nil for a refusal whose reason only its bytes tell.
func (m *Metrics) refused(r *order.Rejection) {
	if r == nil {
		return
	}
	if c := m.refusals[r.Code]; c != nil {
		c.Inc()
	}
	for i := range r.Conflicts {
		if c := m.conflicts[r.Conflicts[i].Reason]; c != nil {
			c.Inc()
		}
	}
}

// Noticed implements [order.Observer].
func (m *Metrics) Noticed(a order.Anomaly, _ time.Duration) {
	if c := m.anomalies[a]; c != nil {
		c.Inc()
	}
}

// paymentEvent counts a callback that was dealt with for the first time, and a
// refund that was not told of.
func (m *Metrics) paymentEvent(t *order.Transition, refund bool) {
	if refund {
		m.refunds.Inc()
	}
	if t.Duplicate {
		return
	}
	if c := m.payments[t.Effect]; c != nil {
		c.Inc()
	}
}

func (m *Metrics) problem(c Code) {
	if counter := m.problems[c]; counter != nil {
		counter.Inc()
	}
}
