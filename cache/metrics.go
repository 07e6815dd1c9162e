package cache

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sony/gobreaker/v2"
)

// metrics of the filter, children resolved once.
type metrics struct {
	bypassed, unsettled                map[reason]prometheus.Counter
	state                              map[gobreaker.State]prometheus.Gauge
	transitions                        map[gobreaker.State]prometheus.Counter
	admit, settle, release, peek, ping *commandMetrics
	info                               *commandMetrics
	wrong                              map[cause]prometheus.Counter
	emptied, evicted                   prometheus.Counter
	memory, memoryMost                 prometheus.Gauge
}

// commandMetrics are those of one kind of operation.
type commandMetrics struct {
	ok, timeout, failed prometheus.Observer
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	bypassed := counters("oncegate_filter_bypassed_total", "Requests that the shared filter could not judge, by reason.", "reason")
	unsettled := counters("oncegate_filter_unsettled_total", "Receipts and releases that did not reach Redis, by reason.", "reason")
	transitions := counters("oncegate_breaker_transitions_total", "Changes of the Redis breaker.", "to")
	state := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "oncegate_breaker_state", Help: "1 for the state that the Redis breaker is in.",
	}, []string{"state"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "oncegate_redis_command_duration_seconds", Help: "Time of one operation on Redis.",
		Buckets: prometheus.ExponentialBuckets(0.00005, 2, 13),
	}, []string{"command", "result"})
	wrong := counters("oncegate_filter_wrong_total", "Keys that nobody had for the filter, and that the ledger knew, by what is to blame.", "cause")
	m := &metrics{
		bypassed: map[reason]prometheus.Counter{}, unsettled: map[reason]prometheus.Counter{},
		state: map[gobreaker.State]prometheus.Gauge{}, transitions: map[gobreaker.State]prometheus.Counter{},
		wrong:      map[cause]prometheus.Counter{},
		emptied:    counter("oncegate_redis_emptied_total", "Times that Redis was flushed, restarted or replaced, as far as it was noticed."),
		evicted:    counter("oncegate_redis_evicted_keys_total", "Keys that Redis gave up for want of memory, other programs' too."),
		memory:     gauge("oncegate_redis_memory_bytes", "Memory that Redis uses, all nodes together."),
		memoryMost: gauge("oncegate_redis_memory_limit_bytes", "Memory that it may use; 0: no limit, or it does not tell."),
	}
	if err := register(r, bypassed, unsettled, transitions, state, took, wrong, m.emptied, m.evicted, m.memory, m.memoryMost); err != nil {
		return nil, err
	}
	for _, c := range causes() {
		m.wrong[c] = wrong.WithLabelValues(string(c))
	}
	for _, why := range reasons() {
		m.bypassed[why], m.unsettled[why] = bypassed.WithLabelValues(string(why)), unsettled.WithLabelValues(string(why))
	}
	for _, s := range []gobreaker.State{gobreaker.StateClosed, gobreaker.StateHalfOpen, gobreaker.StateOpen} {
		m.state[s], m.transitions[s] = state.WithLabelValues(s.String()), transitions.WithLabelValues(s.String())
	}
	timed := func(name string) *commandMetrics {
		return &commandMetrics{
			ok: took.WithLabelValues(name, "ok"), timeout: took.WithLabelValues(name, "timeout"), failed: took.WithLabelValues(name, "error"),
		}
	}
	m.admit, m.settle, m.release = timed("admit"), timed("settle"), timed("release")
	m.peek, m.ping, m.info = timed("peek"), timed("ping"), timed("info")
	return m, nil
}

// watch publishes the size of the process tier, counted when it is asked for.
func (*metrics) watch(r prometheus.Registerer, p *process) error {
	return register(r,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "oncegate_filter_local_receipts", Help: "Receipts that this process remembers."},
			func() float64 { entries, _ := p.size(); return float64(entries) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "oncegate_filter_local_bytes", Help: "Memory for them, about."},
			func() float64 { _, bytes := p.size(); return float64(bytes) }),
	)
}

func counters(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func register(r prometheus.Registerer, all ...prometheus.Collector) error {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("cache: register the metrics: %w", err)
		}
	}
	return nil
}

func (m *metrics) breakerIs(now gobreaker.State) {
	for s, g := range m.state {
		if s == now {
			g.Set(1)
		} else {
			g.Set(0)
		}
	}
}

// observe leaves out what says nothing of Redis: callers who leave in a row must
// not look like a Redis that fails.
func (c *commandMetrics) observe(took time.Duration, err error) {
	switch {
	case isAnswer(err):
		c.ok.Observe(took.Seconds())
	case saysNothing(err):
	case reasonOf(err) == reasonTimeout:
		c.timeout.Observe(took.Seconds())
	default:
		c.failed.Observe(took.Seconds())
	}
}
