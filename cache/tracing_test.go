package cache

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

func TestSpansOfTheFilter(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	r := open(t, testserver.Redis(t).Addr, func(s *settings) { s.options.Tracer = tracer })
	parent, root := tracer.Start(t.Context(), "request")
	adm := r.Admit(parent, attempt("traced-user", "traced-key"))
	require.Equal(t, order.Ours, adm.Advice)
	adm.Ticket.Finish(parent, order.End{Mark: order.MarkReleased})
	root.End()
	ended := spans.Ended()
	require.Len(t, ended, 3)
	require.Equal(t, "filter.admit", ended[0].Name())
	require.Contains(t, fmt.Sprint(ended[0].Attributes()), "ours")
	require.Equal(t, "filter.finish", ended[1].Name())
	require.Contains(t, fmt.Sprint(ended[1].Attributes()), "released")
	for _, s := range ended[:2] {
		require.Equal(t, root.SpanContext().SpanID(), s.Parent().SpanID())
		require.NotContains(t, fmt.Sprint(s.Attributes()), "traced-")
	}
}
