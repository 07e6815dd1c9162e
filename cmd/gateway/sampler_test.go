package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// asked is what the sampler decides for a request that names a trace, and for a
// span below that of the request.
func asked(t *testing.T, kept float64, id string, flags trace.TraceFlags) (request, below bool) {
	t.Helper()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler(kept)))
	traceID, err := trace.TraceIDFromHex(id)
	require.NoError(t, err)
	state, err := trace.ParseTraceState("marker=1")
	require.NoError(t, err)
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: trace.SpanID{1}, TraceFlags: flags, TraceState: state,
	}))
	start := func(ctx context.Context) (context.Context, trace.SpanContext) {
		ctx, span := provider.Tracer("test").Start(ctx, "span")
		defer span.End()
		return ctx, span.SpanContext()
	}
	ctx, of := start(ctx)
	require.Equal(t, traceID, of.TraceID(), "the caller's trace goes on")
	require.Zero(t, of.TraceState().Len())
	_, child := start(ctx)
	return of.IsSampled(), child.IsSampled()
}

func TestACallerDoesNotDecideWhetherItIsTraced(t *testing.T) {
	t.Parallel()
	// The ids are the first and the last that a share of the ids would keep.
	for _, id := range []string{"4bf92f3577b34da60000000000000001", "4bf92f3577b34da6ffffffffffffffff"} {
		for _, flags := range []trace.TraceFlags{0, trace.FlagsSampled} {
			for kept, want := range map[float64]bool{0: false, 1: true} {
				request, below := asked(t, kept, id, flags)
				require.Equal(t, want, request, "%s %v %v", id, flags, kept)
				require.Equal(t, want, below, "%s %v %v", id, flags, kept)
			}
			seen := map[bool]bool{}
			for range 1000 {
				request, below := asked(t, 0.5, id, flags)
				require.Equal(t, request, below, "all of a request, or nothing")
				seen[request] = true
			}
			require.Equal(t, map[bool]bool{true: true, false: true}, seen, fmt.Sprint(id, flags))
		}
	}
}
