package gateway

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traced gives the requests of a route a span each. Without a tracer it is next
// itself. A span has no key, no user, no path and nothing of a body.
func (s *Server) traced(ep *endpoint, next gin.HandlerFunc) gin.HandlerFunc {
	tracer := s.o.Tracer
	if tracer == nil || ep.quiet {
		return next
	}
	return func(c *gin.Context) {
		ctx := continued(c)
		method := methodOf(c.Request)
		ctx, span := tracer.Start(ctx, method+" "+ep.name, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.request.method", method), attribute.String("http.route", ep.name)))
		defer span.End()
		if at := span.SpanContext(); at.IsValid() {
			c.Writer.Header().Set("Traceresponse", traceResponse(at))
		}
		c.Request = c.Request.WithContext(ctx)
		next(c)
	}
}

// continued is the context of a request, in the trace that it names. Tracestate
// and baggage are left out, for they may hold anything, and so is a trace whose
// ids tell the key.
func continued(c *gin.Context) context.Context {
	ctx, r := c.Request.Context(), c.Request
	parent := r.Header.Get("Traceparent")
	if parent == "" || tellsKey(parent, r, keyInPath(c.Params)) {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent})
}

// traceResponse tells a caller where its request is to be found (W3C Trace
// Context, level 2, working draft).
func traceResponse(at trace.SpanContext) string {
	return "00-" + at.TraceID().String() + "-" + at.SpanID().String() + "-" + at.TraceFlags().String()
}

// annotate notes on the request's span what came of it, and returns the id of
// its trace for the log; empty without one.
func (x *exchange) annotate(status int) (traceID string) {
	if x.s.o.Tracer == nil {
		return ""
	}
	span := trace.SpanFromContext(x.r.Context())
	if at := span.SpanContext(); at.IsValid() {
		traceID = at.TraceID().String()
	}
	if !span.IsRecording() {
		return traceID
	}
	span.SetAttributes(attribute.Int("http.response.status_code", status), attribute.String("oncegate.request_id", x.id))
	if x.answer.Kind != 0 {
		span.SetAttributes(attribute.String("oncegate.kind", x.answer.Kind.String()), attribute.String("oncegate.layer", x.answer.Layer.String()))
	}
	if x.code != "" {
		span.SetAttributes(attribute.String("oncegate.code", string(x.code)), attribute.String("oncegate.outcome", string(x.known)))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, string(x.code))
	}
	return traceID
}
