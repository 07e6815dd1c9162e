package main

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncegate/oncegate/configs"
)

// register publishes what is in force. The values are read when they are asked
// for, so they can never be those of a configuration that was replaced.
func (s *settings) register(r prometheus.Registerer) error {
	collectors := []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "oncegate_config_version", Help: "Version of the changes over the admin API that are in force.",
		}, func() float64 { return float64(s.current.Load().version) }),
		refusedGauge("file", &s.refused.file),
		refusedGauge("api", &s.refused.api),
	}
	for name, ttl := range map[string]func(*configs.Config) time.Duration{
		"ttl.receipt":     func(c *configs.Config) time.Duration { return c.TTL.Receipt },
		"ttl.in_progress": func(c *configs.Config) time.Duration { return c.TTL.InProgress },
		"cache.local_ttl": func(c *configs.Config) time.Duration { return c.Cache.LocalTTL },
	} {
		collectors = append(collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "oncegate_ttl_seconds", Help: "Life of what the filter remembers, as it is in force.",
			ConstLabels: prometheus.Labels{"setting": name},
		}, func() float64 { return ttl(s.now()).Seconds() }))
	}
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("register the metrics of the settings: %w", err)
		}
	}
	return nil
}

func refusedGauge(source string, refused *atomic.Bool) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "oncegate_config_refused", Help: "1 while the newest settings of a source are refused and older ones stay in force.",
		ConstLabels: prometheus.Labels{"source": source},
	}, func() float64 {
		if refused.Load() {
			return 1
		}
		return 0
	})
}
