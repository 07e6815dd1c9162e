package gateway_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// sink takes an answer as net/http would, without a network.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

// run sends one request after another through a handler.
func run(b *testing.B, h http.Handler, next func(i int, h http.Header)) {
	b.Helper()
	req := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/api/orders", http.NoBody)
	as("alice")(req.Header)
	req.Header.Set("Content-Type", "application/json")
	body := bytes.NewReader(nil)
	req.ContentLength = int64(len(plain))
	w := &sink{header: http.Header{}}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		next(i, req.Header)
		body.Reset([]byte(plain))
		req.Body = io.NopCloser(body)
		clear(w.header)
		h.ServeHTTP(w, req)
		if w.status != http.StatusCreated {
			b.Fatal(w.status)
		}
		i++
	}
}

func quiet(o *gateway.Options) { o.Logger = slog.New(slog.DiscardHandler) }

// BenchmarkCreated is a new order each time, on a ledger that costs nothing.
func BenchmarkCreated(b *testing.B) {
	k := newKit(b, quiet)
	rich := order.MaxBalance
	require.NoError(b, k.ledger.SetBalance(b.Context(), "alice", rich))
	run(b, k.server.Handler(), func(i int, h http.Header) { h["Idempotency-Key"] = []string{"k" + strconv.Itoa(i)} })
}

// BenchmarkReplayed is the same request each time, answered by the filter.
func BenchmarkReplayed(b *testing.B) {
	k := newKit(b, quiet)
	run(b, k.server.Handler(), func(_ int, h http.Header) { h["Idempotency-Key"] = []string{"k1"} })
}

// BenchmarkGinAlone is the floor: the same engine with a handler that does nothing.
func BenchmarkGinAlone(b *testing.B) {
	e := gin.New()
	e.POST("/api/orders", func(c *gin.Context) { c.Status(http.StatusCreated) })
	run(b, e, func(int, http.Header) {})
}
