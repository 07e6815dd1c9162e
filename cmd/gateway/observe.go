package main

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/oncegate/oncegate/cache"
	"github.com/oncegate/oncegate/order"
)

// newRegistry is where the metrics of a process are gathered: those of Go, of the
// process and of the build are there already.
// How many lines of its log were lost, too; nil is of a log that loses none.
func newRegistry(lost func() int64) (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := registerBuild(registry); err != nil {
		return registry, err
	}
	return registry, registerLost(registry, lost)
}

// registerBuild publishes which build this is.
func registerBuild(r prometheus.Registerer) error {
	b := readBuild()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "oncegate_build_info", Help: "1; the labels say which build this is.",
		ConstLabels: prometheus.Labels{"version": b.version, "revision": b.revision, "goversion": b.goVersion},
	})
	info.Set(1)
	if err := r.Register(info); err != nil {
		return fmt.Errorf("register the build: %w", err)
	}
	return nil
}

// witness tells the filter of what it got wrong, so that it can find out why.
type witness struct {
	order.Observer
	filter *cache.Filter
}

// Noticed implements [order.Observer].
func (w witness) Noticed(a order.Anomaly, age time.Duration) {
	w.Observer.Noticed(a, age)
	if a == order.FilterMissed {
		w.filter.Missed(age)
	}
}
