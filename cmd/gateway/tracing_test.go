package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/oncegate/oncegate/configs"
)

// spanSink is a collector.
type spanSink struct {
	mu    sync.Mutex
	spans []*traces.Span
	raw   strings.Builder
}

func (s *spanSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw.Write(body)
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			s.spans = append(s.spans, scope.GetSpans()...)
		}
	}
}

// of returns the names of a trace's spans, each with that of its parent.
func (s *spanSink) of(trace string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, parents := map[string]string{}, map[string]string{}
	for _, span := range s.spans {
		names[string(span.GetSpanId())] = span.GetName()
	}
	for _, span := range s.spans {
		if hex.EncodeToString(span.GetTraceId()) == trace {
			parents[span.GetName()] = names[string(span.GetParentSpanId())]
		}
	}
	return parents
}

func TestAnOrderIsTracedFromTheRequestToTheCommit(t *testing.T) {
	t.Parallel()
	sink := &spanSink{}
	web := httptest.NewServer(sink)
	t.Cleanup(web.Close)
	c := embedded(t.TempDir())
	c.Tracing = configs.Tracing{Endpoint: web.URL, Sample: 1}
	g := start(t, c)
	alice := newCustomer(t, c, "traced-alice")
	a := alice.post(g, "traced-key", potsticker)
	require.Equal(t, http.StatusCreated, a.status)
	parts := strings.Split(a.header.Get("Traceresponse"), "-")
	require.Len(t, parts, 4)
	require.NoError(t, g.stopped(), "which sends the last spans")
	require.Equal(t, map[string]string{
		"POST /api/orders":    "",
		"filter.admit":        "POST /api/orders",
		"ledger.decide":       "POST /api/orders",
		"ledger.transaction":  "ledger.decide",
		"ledger.begin":        "ledger.transaction",
		"ledger.lock_users":   "ledger.transaction",
		"ledger.read_records": "ledger.transaction",
		"ledger.read_numbers": "ledger.transaction",
		"ledger.lock_stock":   "ledger.transaction",
		"ledger.plan":         "ledger.transaction",
		"ledger.write":        "ledger.transaction",
		"ledger.commit":       "ledger.transaction",
		"filter.finish":       "POST /api/orders",
	}, sink.of(parts[1]))
	require.NotContains(t, sink.raw.String(), "traced-")
	require.NotContains(t, sink.raw.String(), "potsticker")
}

// TestACollectorThatIsAwayIsNotNoticed by clients, nor by whoever stops the gateway.
func TestACollectorThatIsAwayIsNotNoticed(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	web.Close()
	c := embedded(t.TempDir())
	c.Tracing = configs.Tracing{Endpoint: web.URL, Sample: 1}
	g := start(t, c)
	require.Equal(t, http.StatusCreated, newCustomer(t, c, "alice").post(g, "k", potsticker).status)
	require.NoError(t, g.stopped())
}

func TestWhatIsNotSampledIsNotSent(t *testing.T) {
	t.Parallel()
	sink := &spanSink{}
	web := httptest.NewServer(sink)
	t.Cleanup(web.Close)
	c := embedded(t.TempDir())
	c.Tracing = configs.Tracing{Endpoint: web.URL + "/v1/traces", Sample: 0}
	g := start(t, c)
	alice := newCustomer(t, c, "alice")
	require.Equal(t, http.StatusCreated, alice.post(g, "k", potsticker).status)
	require.NoError(t, g.stopped())
	require.Empty(t, sink.spans)
}
