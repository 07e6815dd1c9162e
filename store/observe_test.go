package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/oncegate/oncegate/order"
)

// children reads a metric's children by the value of their only label.
func children(t *testing.T, r prometheus.Gatherer, name string) map[string]*dto.Metric {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	found := map[string]*dto.Metric{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			label := ""
			if len(m.GetLabel()) > 0 {
				label = m.GetLabel()[0].GetValue()
			}
			found[label] = m
		}
	}
	require.NotEmpty(t, found, name)
	return found
}

func TestEveryStepOfATransactionIsTimed(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	h := openHarness(t, Options{DSN: sqliteDatabase(t), Registerer: reg, Queue: 7})
	account(t, h, "ann", 10_00)
	require.Equal(t, "created", kinds(submit(t, h, command(t, "ann", "k", potsticker(1_00)))()))
	require.Equal(t, "replayed", kinds(submit(t, h, command(t, "ann", "k", potsticker(1_00)))()))
	took := children(t, reg, "oncegate_ledger_step_duration_seconds")
	for s, want := range map[string]uint64{
		"begin": 2, "lock_users": 2, "read_records": 2, "read_numbers": 2, "lock_stock": 2, "plan": 2, "write": 1, "commit": 1,
	} {
		require.Equal(t, want, took[s].GetHistogram().GetSampleCount(), s)
	}
	require.Len(t, took, int(steps))
	require.EqualValues(t, 2, children(t, reg, "oncegate_ledger_queue_wait_seconds")[""].GetHistogram().GetSampleCount())
	require.InDelta(t, 7, children(t, reg, "oncegate_ledger_queue_capacity")[""].GetGauge().GetValue(), 0, "the embedded database has one worker")
	require.Contains(t, children(t, reg, "go_sql_open_connections"), "ledger")
	require.Contains(t, children(t, reg, "oncegate_server_check_weak"), "sync_binlog")
}

func TestTheBacklogOfCompaction(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		reg := prometheus.NewRegistry()
		h := openHarness(t, Options{DSN: dsn, Registerer: reg})
		account(t, h, "ann", 10_00)
		b, err := h.CompactionBacklog(t.Context(), 24*time.Hour)
		require.NoError(t, err)
		require.Zero(t, b)
		for i := range 3 {
			submit(t, h, command(t, "ann", fmt.Sprintf("k%d", i), potsticker(1_00)))()
		}
		h.age(t, 36*time.Hour)
		submit(t, h, command(t, "ann", "fresh", potsticker(1_00)))()
		b, err = h.CompactionBacklog(t.Context(), 24*time.Hour)
		require.NoError(t, err)
		require.EqualValues(t, 3, b.Records)
		require.InDelta(t, 12*time.Hour, b.Behind, float64(time.Hour))

		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.WatchBacklog(ctx, func() time.Duration { return 24 * time.Hour })
		}()
		require.Eventually(t, func() bool {
			return children(t, reg, "oncegate_compaction_backlog_records")[""].GetGauge().GetValue() == 3
		}, ample, 5*time.Millisecond)
		stop()
		<-done

		_, err = h.Compact(t.Context(), CompactOptions{OlderThan: 24 * time.Hour})
		require.NoError(t, err)
		b, err = h.CompactionBacklog(t.Context(), 24*time.Hour)
		require.NoError(t, err)
		require.Zero(t, b)
	})
}

// tracedStore is a store whose spans are recorded.
func tracedStore(t *testing.T, sampler sdktrace.Sampler) (*harness, *tracetest.SpanRecorder, *sdktrace.TracerProvider) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sampler))
	h := openHarness(t, Options{DSN: sqliteDatabase(t), Tracer: provider.Tracer("test")})
	account(t, h, "traced-ann", 10_00)
	return h, spans, provider
}

func named(spans []sdktrace.ReadOnlySpan, name string) (found []sdktrace.ReadOnlySpan) {
	for _, s := range spans {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

func TestADecisionHasSpans(t *testing.T) {
	t.Parallel()
	h, spans, _ := tracedStore(t, sdktrace.AlwaysSample())
	require.Equal(t, "created", kinds(submit(t, h, command(t, "traced-ann", "traced-key", potsticker(1_00)))()))
	require.Eventually(t, func() bool { return len(named(spans.Ended(), "ledger.transaction")) == 1 }, ample, time.Millisecond)
	decide, transaction := named(spans.Ended(), "ledger.decide")[0], named(spans.Ended(), "ledger.transaction")[0]
	require.Equal(t, decide.SpanContext().SpanID(), transaction.Parent().SpanID())
	for s := range steps {
		of := named(spans.Ended(), "ledger."+s.String())
		require.Len(t, of, 1, s.String())
		require.Equal(t, transaction.SpanContext().SpanID(), of[0].Parent().SpanID())
	}
	for _, s := range spans.Ended() {
		require.NotContains(t, s.Name()+fmt.Sprint(s.Attributes(), s.Events(), s.Links(), s.Status()), "traced-")
	}
}

func TestAGroupIsLinkedWithItsMembers(t *testing.T) {
	t.Parallel()
	h, spans, provider := tracedStore(t, sdktrace.AlwaysSample())
	tracer := provider.Tracer("test")
	var group []*pending
	for range 3 {
		_, span := tracer.Start(t.Context(), "member")
		group = append(group, &pending{span: span})
	}
	group = append(group, &pending{}) // of a deferred request: nobody's trace
	_, ended := h.traceGroup(t.Context(), group)
	ended(&failure{fault: faultConflict})
	for _, p := range group[:3] {
		p.span.End()
	}
	transaction := named(spans.Ended(), "ledger.transaction")[0]
	members := named(spans.Ended(), "member")
	require.Equal(t, members[0].SpanContext().SpanID(), transaction.Parent().SpanID())
	require.Len(t, transaction.Links(), 2)
	require.Equal(t, "conflict", transaction.Status().Description)
	for i, m := range members[1:] {
		require.Equal(t, m.SpanContext().SpanID(), transaction.Links()[i].SpanContext.SpanID())
		require.Len(t, m.Links(), 1)
		require.Equal(t, transaction.SpanContext().SpanID(), m.Links()[0].SpanContext.SpanID())
	}
}

func TestWhatIsNotSampledHasNoSpans(t *testing.T) {
	t.Parallel()
	h, spans, _ := tracedStore(t, sdktrace.ParentBased(sdktrace.NeverSample()))
	require.Equal(t, "created", kinds(submit(t, h, command(t, "traced-ann", "k", potsticker(1_00)))()))
	require.Empty(t, spans.Started())
	group := []*pending{{}, {}}
	_, ended := h.traceGroup(t.Context(), group)
	ended(nil)
	require.Empty(t, spans.Started())
}

func TestARefusalSaysWhy(t *testing.T) {
	t.Parallel()
	h := openHarness(t, Options{DSN: sqliteDatabase(t)})
	account(t, h, "ann", 1_00)
	results := submit(t, h, command(t, "ann", "k", potsticker(2_00)))()
	require.Equal(t, &order.Rejection{Code: order.InsufficientBalance}, results[0].decision.Rejection)
}
