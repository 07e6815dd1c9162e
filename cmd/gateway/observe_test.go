package main

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/deploy/observability"
	"github.com/oncegate/oncegate/internal/testserver"
)

// scrape reads a gateway's metrics as Prometheus does.
func scrape(t *testing.T, g *running) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(metricsOf(t, g)))
	require.NoError(t, err)
	return families
}

// observed is a gateway that has every metric: with Redis, and with messages.
func observed(t *testing.T, processTier bool) (*running, *testserver.RedisServer, *customer) {
	t.Helper()
	server := testserver.StartRedis(t)
	c := embedded(t.TempDir())
	c.MySQL.DSN = configs.NewSecret(configs.EmbeddedDSN)
	c.Redis.Addrs = []string{server.Addr}
	c.Cache.MACKey = configs.NewSecret("a key of at least sixteen bytes")
	c.Cache.ProcessTier = processTier
	c.Messages.Broker, c.Messages.Addrs = "redis", []string{server.Addr}
	r := start(t, c)
	return r, server, newCustomer(t, c, "observed-alice")
}

func TestEveryMetricOfTheRulesAndTheDashboardIsInAScrape(t *testing.T) {
	t.Parallel()
	g, _, _ := observed(t, true)
	known := map[string]bool{"up": true} // Prometheus' own
	for name, family := range scrape(t, g) {
		if family.GetType() == dto.MetricType_HISTOGRAM {
			known[name+"_bucket"], known[name+"_sum"], known[name+"_count"] = true, true, true
			continue
		}
		known[name] = true
	}
	rules, err := observability.Rules()
	require.NoError(t, err)
	for _, r := range rules {
		known[r.Record] = true
	}
	queries, err := observability.Queries()
	require.NoError(t, err)
	for _, q := range queries {
		for _, name := range q.Metrics() {
			require.True(t, known[name], "%s names %s, which is in no scrape: %s", q.Where, name, q.Expr)
		}
	}
}

func TestMetricsNameNobody(t *testing.T) {
	t.Parallel()
	g, _, alice := observed(t, true)
	require.Equal(t, http.StatusCreated, alice.post(g, "observed-key", potsticker).status)
	require.Equal(t, http.StatusCreated, alice.post(g, "observed-key", potsticker).status)
	require.Equal(t, http.StatusOK, alice.get(g, "/api/requests/observed-key").status)
	text := metricsOf(t, g)
	require.NotContains(t, text, "observed-")
	require.Contains(t, text, `oncegate_http_request_duration_seconds_count{outcome="replayed",route="/api/orders"} 1`)
	require.Contains(t, text, "oncegate_build_info{")
}

// TestAFlushIsSeenInTheMetrics: Redis forgets, the database answers, and the
// metrics say why.
func TestAFlushIsSeenInTheMetrics(t *testing.T) {
	t.Parallel()
	g, server, alice := observed(t, false)
	require.Eventually(t, func() bool {
		return scrape(t, g)["oncegate_redis_memory_bytes"].GetMetric()[0].GetGauge().GetValue() > 0
	}, time.Minute, 20*time.Millisecond)
	first := alice.post(g, "k", potsticker)
	require.Equal(t, http.StatusCreated, first.status)
	redis := server.Client(t)
	require.Eventually(t, func() bool {
		require.NoError(t, redis.FlushDB(t.Context()).Err())
		again := alice.post(g, "k", potsticker)
		require.Equal(t, first.body, again.body)
		require.True(t, again.replayed())
		return strings.Contains(metricsOf(t, g), `oncegate_filter_wrong_total{cause="flushed"} `) &&
			!strings.Contains(metricsOf(t, g), `oncegate_filter_wrong_total{cause="flushed"} 0`)
	}, time.Minute, 100*time.Millisecond)
}

// TestAnIdleGatewayUsesRedisAgainThatIsBack: the alert on a Redis that is left
// alone must end without requests, without probes of its health, and without a
// console that looks.
func TestAnIdleGatewayUsesRedisAgainThatIsBack(t *testing.T) {
	t.Parallel()
	g, server, alice := observed(t, true)
	closed := func() bool { return strings.Contains(metricsOf(t, g), `oncegate_breaker_state{state="closed"} 1`) }
	eventually(t, "the breaker is never closed", closed) // a busy Redis may have opened it
	server.Kill()
	n := 0
	eventually(t, "the breaker never opens", func() bool {
		n++
		require.Equal(t, http.StatusCreated, alice.post(g, "k"+strconv.Itoa(n), potsticker).status)
		return !closed()
	})
	server.Restart()
	eventually(t, "the breaker never closes", closed)
}
