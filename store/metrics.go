package store

import "github.com/prometheus/client_golang/prometheus"

// metrics of the ledger, children resolved once.
type metrics struct {
	batch      prometheus.Histogram
	rows       prometheus.Histogram
	took       prometheus.Histogram
	retries    map[fault]prometheus.Counter
	unknown    prometheus.Counter
	resolved   map[string]prometheus.Counter
	overloaded prometheus.Counter
	withdrawn  prometheus.Counter
	failovers  prometheus.Counter
	weak       *prometheus.GaugeVec
	waiting    prometheus.Gauge
	capacity   prometheus.Gauge
	waited     prometheus.Histogram
	steps      [steps]prometheus.Observer
	backlog    prometheus.Gauge
	behind     prometheus.Gauge
}

// How an unknown commit was resolved.
const (
	resolvedCommitted = "committed"
	resolvedAbsent    = "absent"
	resolvedNot       = "unresolved"
)

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		r.MustRegister(h)
		return h
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		r.MustRegister(g)
		return g
	}
	m := &metrics{
		batch:      histogram("oncegate_ledger_batch_commands", "Commands decided in one transaction.", prometheus.ExponentialBuckets(1, 2, 7)),
		rows:       histogram("oncegate_ledger_batch_rows", "Order lines in one transaction.", prometheus.ExponentialBuckets(1, 2, 10)),
		took:       histogram("oncegate_ledger_transaction_seconds", "Time of one attempt at a transaction.", prometheus.ExponentialBuckets(0.0005, 2, 15)),
		unknown:    counter("oncegate_ledger_commit_unknown_total", "Transactions whose COMMIT was not answered with success."),
		overloaded: counter("oncegate_ledger_overloaded_total", "Commands refused because the queue was full, or they would have waited in it for half of their time."),
		withdrawn:  counter("oncegate_ledger_withdrawn_total", "Commands whose time ran out before they were started."),
		failovers:  counter("oncegate_ledger_server_changes_total", "Times that another database server answered."),
		weak: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "oncegate_server_check_weak", Help: "1 for a server setting that weakens durability.",
		}, []string{"setting"}),
		waiting:  gauge("oncegate_ledger_waiting", "Commands waiting for a worker."),
		capacity: gauge("oncegate_ledger_queue_capacity", "Commands that may wait, all workers together."),
		waited:   histogram("oncegate_ledger_queue_wait_seconds", "Time that the first command of a group waited for its worker.", prometheus.ExponentialBuckets(0.00005, 2, 18)),
		steps:    newStepMetrics(r),
		backlog:  gauge("oncegate_compaction_backlog_records", "Records past retention.responses that no complete compaction has seen; counted to 10000."),
		behind:   gauge("oncegate_compaction_behind_seconds", "How far past retention.responses the oldest of them is."),
		retries:  map[fault]prometheus.Counter{},
		resolved: map[string]prometheus.Counter{},
	}
	r.MustRegister(m.weak)
	for _, setting := range weakSettings() {
		m.weak.WithLabelValues(setting)
	}
	retries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oncegate_ledger_faults_total", Help: "Attempts at a transaction that ended in a fault.",
	}, []string{"fault"})
	r.MustRegister(retries)
	for _, f := range []fault{faultPermanent, faultConflict, faultLockWait, faultDuplicate, faultReference, faultUnavailable} {
		m.retries[f] = retries.WithLabelValues(f.String())
	}
	resolved := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oncegate_ledger_commit_resolved_total", Help: "Commands of unknown commits, by what was found out.",
	}, []string{"found"})
	r.MustRegister(resolved)
	for _, found := range []string{resolvedCommitted, resolvedAbsent, resolvedNot} {
		m.resolved[found] = resolved.WithLabelValues(found)
	}
	return m
}
