package cache

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// metrics of the filter, children resolved once.
type metrics struct {
	bypassed, lost          map[string]prometheus.Counter
	state                   map[gobreaker.State]prometheus.Gauge
	transitions             map[gobreaker.State]prometheus.Counter
	set, get, release, ping *commandMetrics
}

type commandMetrics struct {
	ok, failed prometheus.Observer
}

func newMetrics(r prometheus.Registerer) *metrics {
	counters := func(name, help, label string, values []string) map[string]prometheus.Counter {
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		r.MustRegister(vec)
		children := make(map[string]prometheus.Counter, len(values))
		for _, v := range values {
			children[v] = vec.WithLabelValues(v)
		}
		return children
	}
	m := &metrics{
		bypassed:    counters("oncegate_filter_bypassed_total", "Requests that the shared filter could not judge, by reason.", "reason", reasons),
		lost:        counters("oncegate_filter_unsettled_total", "Receipts and releases that did not reach Redis, by reason.", "reason", reasons),
		state:       map[gobreaker.State]prometheus.Gauge{},
		transitions: map[gobreaker.State]prometheus.Counter{},
	}
	states := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "oncegate_breaker_state", Help: "1 for the state that the Redis breaker is in."}, []string{"state"})
	moves := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oncegate_breaker_transitions_total", Help: "Changes of the Redis breaker."}, []string{"to"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "oncegate_redis_command_seconds", Help: "Time of one Redis operation.", Buckets: prometheus.ExponentialBuckets(0.00005, 2, 13),
	}, []string{"command", "result"})
	r.MustRegister(states, moves, took)
	for _, s := range []gobreaker.State{gobreaker.StateClosed, gobreaker.StateHalfOpen, gobreaker.StateOpen} {
		m.state[s], m.transitions[s] = states.WithLabelValues(s.String()), moves.WithLabelValues(s.String())
	}
	command := func(name string) *commandMetrics {
		return &commandMetrics{ok: took.WithLabelValues(name, "ok"), failed: took.WithLabelValues(name, "error")}
	}
	m.set, m.get, m.release, m.ping = command("set"), command("get"), command("release"), command("ping")
	return m
}

// watch publishes the size of the process tier, counted when it is asked for.
func (m *metrics) watch(r prometheus.Registerer, p *process) {
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "oncegate_filter_local_receipts", Help: "Receipts that this process remembers."},
			func() float64 { entries, _ := p.size(); return float64(entries) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "oncegate_filter_local_bytes", Help: "Memory for them, about."},
			func() float64 { _, bytes := p.size(); return float64(bytes) }),
	)
}

func (m *metrics) bypass(reason string)    { m.bypassed[reason].Inc() }
func (m *metrics) unsettled(reason string) { m.lost[reason].Inc() }

func (m *metrics) breaker(now gobreaker.State) {
	for s, g := range m.state {
		g.Set(0)
		if s == now {
			g.Set(1)
		}
	}
	m.transitions[now].Inc()
}

func (c *commandMetrics) observe(took time.Duration, err error) {
	if err == nil || errors.Is(err, redis.Nil) {
		c.ok.Observe(took.Seconds())
		return
	}
	c.failed.Observe(took.Seconds())
}
