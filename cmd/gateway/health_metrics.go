package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncegate/oncegate/gateway"
)

// healthMetrics publishes what /readyz says of each check. A gateway without its
// database is not ready and gets no orders, so no order fails: nothing else that
// is counted tells of it.
type healthMetrics struct {
	health *gateway.Health
	ok     *prometheus.Desc
}

// registerHealth publishes a health. A scrape takes as long as a round of checks
// at most.
func registerHealth(r prometheus.Registerer, h *gateway.Health) error {
	m := healthMetrics{h, prometheus.NewDesc("oncegate_health_check_ok", "1 while a check of /readyz passes, 0 while it fails.", []string{"check"}, nil)}
	if err := r.Register(m); err != nil {
		return fmt.Errorf("register the metrics of health: %w", err)
	}
	return nil
}

// Describe implements [prometheus.Collector].
func (m healthMetrics) Describe(to chan<- *prometheus.Desc) { to <- m.ok }

// Collect implements [prometheus.Collector].
func (m healthMetrics) Collect(to chan<- prometheus.Metric) {
	for check, state := range m.health.States(context.Background()) { // a round has a bound of its own
		value := 0.0
		if state == "ok" {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(m.ok, prometheus.GaugeValue, value, check)
	}
}
