package gateway_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
)

func newTracedKit(t *testing.T) (*kit, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	return newKit(t, func(o *gateway.Options) { o.Tracer = provider.Tracer("test") }), spans
}

func attributes(s sdktrace.ReadOnlySpan) map[string]string {
	found := map[string]string{}
	for _, a := range s.Attributes() {
		found[string(a.Key)] = a.Value.String()
	}
	return found
}

func TestARequestContinuesItsCallersTrace(t *testing.T) {
	t.Parallel()
	k, spans := newTracedKit(t)
	r := k.post(potstick, key("k1"), with("Traceparent", "00-"+callersTrace+"-"+callersSpan+"-01"))
	require.Equal(t, http.StatusCreated, r.status)
	require.Len(t, spans.Ended(), 1)
	span := spans.Ended()[0]
	require.Equal(t, "POST /api/orders", span.Name())
	require.Equal(t, trace.SpanKindServer, span.SpanKind())
	require.Equal(t, callersTrace, span.SpanContext().TraceID().String())
	require.Equal(t, callersSpan, span.Parent().SpanID().String())
	require.Equal(t, "00-"+callersTrace+"-"+span.SpanContext().SpanID().String()+"-01", r.header.Get("Traceresponse"))
	require.Equal(t, callersTrace, k.line()["trace_id"])
	require.Equal(t, map[string]string{
		"http.request.method": "POST", "http.route": "/api/orders", "http.response.status_code": "201",
		"oncegate.request_id": r.header.Get("X-Request-Id"), "oncegate.kind": "created", "oncegate.layer": "mysql",
	}, attributes(span))
}

func TestASpanSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	k, spans := newTracedKit(t)
	k.ledger.SetFault(func(*order.Command) error { return order.Undecided(order.OutcomeUnknown, order.ErrUnavailable) })
	k.post(plain, key("k1"))
	require.Len(t, spans.Ended(), 1)
	got := attributes(spans.Ended()[0])
	require.Equal(t, "UNAVAILABLE", got["oncegate.code"])
	require.Equal(t, "unknown", got["oncegate.outcome"])
	require.Equal(t, "Error", spans.Ended()[0].Status().Code.String())
}

func TestProbesHaveNoSpans(t *testing.T) {
	t.Parallel()
	k, spans := newTracedKit(t)
	require.Equal(t, http.StatusOK, k.do(http.MethodGet, "/livez", "").status)
	require.Empty(t, spans.Started())
}

func TestSpansHoldNoSecrets(t *testing.T) {
	t.Parallel()
	k, spans := newTracedKit(t)
	k.post(`{"sku":"marker-sku","quantity":2,"amount":"39.80"}`, key("marker-key"), with("Baggage", "who=marker-baggage"),
		with("Traceparent", "00-"+callersTrace+"-"+callersSpan+"-01"), with("Tracestate", "marker=1"))
	k.post(`{"marker-member":"marker-value"}`, key("marker-key"))
	k.do(http.MethodGet, "/api/requests/marker-key?marker=1", "", as("alice"))
	k.do(http.MethodGet, "/marker-path", "")
	k.exchange("marker-method /api/orders HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	require.Len(t, spans.Ended(), 5)
	for _, s := range spans.Ended() {
		require.Zero(t, s.SpanContext().TraceState().Len())
		text := s.Name() + fmt.Sprint(s.Attributes(), s.Events(), s.Links(), s.Status())
		require.NotContains(t, text, "marker")
		require.NotContains(t, text, "alice")
	}
}
