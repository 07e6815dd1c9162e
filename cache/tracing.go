package cache

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncegate/oncegate/order"
)

// admitTraced is Admit with a span, in which the key's name does not appear.
func (f *Filter) admitTraced(ctx context.Context, a order.Attempt) order.Admission {
	ctx, span := f.o.Tracer.Start(ctx, "filter.admit", trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	adm := f.admit(ctx, &a)
	if span.IsRecording() {
		span.SetAttributes(attribute.String("oncegate.advice", adm.Advice.String()), attribute.String("oncegate.layer", adm.Layer.String()))
	}
	return adm
}

// startFinish begins the span of a ticket's end, if there are spans.
func (f *Filter) startFinish(ctx context.Context, mark order.Mark) (context.Context, func()) {
	if f.o.Tracer == nil {
		return ctx, func() {}
	}
	ctx, span := f.o.Tracer.Start(ctx, "filter.finish", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("oncegate.mark", mark.String())))
	return ctx, func() { span.End() }
}
