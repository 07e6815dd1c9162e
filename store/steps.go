package store

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// step is a part of a transaction of the ledger.
type step uint8

// The steps, in their order.
const (
	stepBegin step = iota // get a session, open the transaction
	stepLockUsers
	stepReadRecords
	stepReadNumbers
	stepLockStock
	stepPlan // in memory
	stepWrite
	stepCommit
	steps
)

// String returns the name used in metrics and traces.
func (s step) String() string {
	return [steps]string{"begin", "lock_users", "read_records", "read_numbers", "lock_stock", "plan", "write", "commit"}[s]
}

func newStepMetrics(r prometheus.Registerer) (observers [steps]prometheus.Observer) {
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "oncegate_ledger_step_duration_seconds", Help: "Time of one step of a transaction that was done with it. A wait for a lock is in lock_users and lock_stock.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
	}, []string{"step"})
	r.MustRegister(took)
	for s := range steps {
		observers[s] = took.WithLabelValues(s.String())
	}
	return observers
}

// stopwatch times the steps of one attempt.
type stopwatch struct {
	s      *Store
	ctx    context.Context //nolint:containedctx // of the attempt, for its spans
	traced bool
	at     time.Time
}

func (s *Store) startSteps(ctx context.Context) stopwatch {
	return stopwatch{s, ctx, s.o.Tracer != nil && trace.SpanFromContext(ctx).IsRecording(), s.o.Now()}
}

// done ends a step and begins the next.
func (w *stopwatch) done(done step) {
	now := w.s.o.Now()
	w.s.metrics.steps[done].Observe(now.Sub(w.at).Seconds())
	if w.traced {
		_, span := w.s.o.Tracer.Start(w.ctx, "ledger."+done.String(), trace.WithTimestamp(w.at))
		span.End(trace.WithTimestamp(now))
	}
	w.at = now
}
