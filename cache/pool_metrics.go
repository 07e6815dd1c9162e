package cache

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// poolMetrics publish the client's own counts of its connections, read when
// they are asked for.
type poolMetrics struct {
	client                                           redis.UniversalClient
	connections, hits, misses, timeouts, waits, took *prometheus.Desc
	stale                                            *prometheus.Desc
}

func newPoolMetrics(client redis.UniversalClient) *poolMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("oncegate_redis_pool_"+name, help, labels, nil)
	}
	return &poolMetrics{
		client:      client,
		connections: desc("connections", "Connections to Redis, all nodes together.", "state"),
		hits:        desc("hits_total", "Times that a free connection was there."),
		misses:      desc("misses_total", "Times that there was none."),
		timeouts:    desc("timeouts_total", "Times that none became free in time."),
		waits:       desc("waits_total", "Times that somebody waited for one."),
		took:        desc("wait_seconds_total", "Time spent waiting for one."),
		stale:       desc("stale_total", "Connections that were removed because they were of no use any more."),
	}
}

// Describe implements [prometheus.Collector]. It must not count to find out: the
// client of a Cluster connects for that, and this is called at the start.
func (p *poolMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.connections, p.hits, p.misses, p.timeouts, p.waits, p.took, p.stale} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (p *poolMetrics) Collect(out chan<- prometheus.Metric) {
	s := *p.client.PoolStats()
	if more := s.PipelineStats; more != nil { // shared round trips have connections of their own
		s.IdleConns += more.IdleConns
		s.TotalConns += more.TotalConns
		s.Hits += more.Hits
		s.Misses += more.Misses
		s.Timeouts += more.Timeouts
		s.WaitCount += more.WaitCount
		s.WaitDurationNs += more.WaitDurationNs
		s.StaleConns += more.StaleConns
	}
	gauge := func(state string, n uint32) {
		out <- prometheus.MustNewConstMetric(p.connections, prometheus.GaugeValue, float64(n), state)
	}
	count := func(d *prometheus.Desc, n float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n)
	}
	gauge("idle", s.IdleConns)
	gauge("used", s.TotalConns-min(s.TotalConns, s.IdleConns))
	count(p.hits, float64(s.Hits))
	count(p.misses, float64(s.Misses))
	count(p.timeouts, float64(s.Timeouts))
	count(p.waits, float64(s.WaitCount))
	count(p.took, time.Duration(s.WaitDurationNs).Seconds())
	count(p.stale, float64(s.StaleConns))
}
