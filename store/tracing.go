package store

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncegate/oncegate/order"
)

// decideTraced is Decide with a span, from the queue to the answer.
func (s *Store) decideTraced(ctx context.Context, c *order.Command) (order.Decision, error) {
	ctx, span := s.o.Tracer.Start(ctx, "ledger.decide")
	defer span.End()
	d, err := s.decide(ctx, &pending{cmd: c, span: span})
	if err != nil {
		span.SetAttributes(attribute.String("oncegate.outcome", string(order.OutcomeOf(err))))
		span.SetStatus(codes.Error, "undecided")
	} else {
		span.SetAttributes(attribute.String("oncegate.kind", d.Kind.String()))
	}
	return d, err
}

// traceGroup gives an attempt at a group a span, if one of its commands is
// traced. A transaction belongs to all of them: it is a child of the first, and
// it and the others are linked, both ways. The attempt ends with ended.
func (s *Store) traceGroup(ctx context.Context, group []*pending) (inside context.Context, ended func(*failure)) {
	if s.o.Tracer == nil {
		return ctx, func(*failure) {}
	}
	var members []trace.Span
	for _, p := range group {
		if p.span != nil && p.span.IsRecording() {
			members = append(members, p.span)
		}
	}
	if len(members) == 0 {
		return ctx, func(*failure) {}
	}
	links := make([]trace.Link, 0, len(members)-1)
	for _, m := range members[1:] {
		links = append(links, trace.Link{SpanContext: m.SpanContext()})
	}
	ctx, span := s.o.Tracer.Start(trace.ContextWithSpan(ctx, members[0]), "ledger.transaction",
		trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(links...),
		trace.WithAttributes(attribute.String("db.system.name", s.d.name), attribute.Int("oncegate.batch.commands", len(group))))
	for _, m := range members[1:] {
		m.AddLink(trace.Link{SpanContext: span.SpanContext()})
	}
	return ctx, func(f *failure) {
		if f != nil {
			span.SetAttributes(attribute.String("oncegate.fault", f.fault.String()))
			span.SetStatus(codes.Error, f.fault.String()) // not its text: an error of the server may quote a key
		}
		span.End()
	}
}
