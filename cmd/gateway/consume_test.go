package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/deploy/observability"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/internal/testserver"
)

// reading is an "oncegate consume" that runs until the test ends.
type reading struct {
	t     *testing.T
	log   *testserver.Output
	admin string             // where its admin listener is, or "off"
	stop  context.CancelFunc // asks it to end, as a signal does
}

func consume(t *testing.T, vars []string, args ...string) *reading {
	t.Helper()
	r := &reading{t: t, log: &testserver.Output{}}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	r.stop = stop
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, environment{args: append([]string{"consume"}, args...), vars: vars, stdout: io.Discard, stderr: r.log})
	}()
	t.Cleanup(func() {
		stop()
		require.Equal(t, exitOK, <-ended, r.log)
	})
	eventually(t, "it never begins", func() bool {
		for line := range strings.Lines(r.log.String()) {
			var said struct{ Msg, Admin string }
			if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "reading payment events" {
				r.admin = said.Admin
			}
		}
		return r.admin != ""
	})
	return r
}

// ask returns what the admin listener of the consumer answers.
func (r *reading) ask(path string) (status int, body string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.admin+path, http.NoBody)
	require.NoError(r.t, err)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	require.NoError(r.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return resp.StatusCode, string(text)
}

// payments are the variables of a consumer with a database of its own that reads
// from a Redis.
func payments(t *testing.T, broker *testserver.RedisServer) []string {
	t.Helper()
	vars := []string{
		"ONCEGATE_DATA_DIR=" + t.TempDir(), "ONCEGATE_ADMIN__LISTEN=127.0.0.1:0", "ONCEGATE_LOG__FORMAT=json",
		"ONCEGATE_MESSAGES__BROKER=redis", "ONCEGATE_MESSAGES__ADDRS=" + broker.Addr,
	}
	code, _, stderr := command(t, vars, "migrate", "up")
	require.Equal(t, exitOK, code, stderr)
	return vars
}

func TestAConsumerShowsItsMetricsAndItsHealth(t *testing.T) {
	t.Parallel()
	broker := testserver.StartRedis(t)
	c := consume(t, payments(t, broker))
	eventually(t, "it is never ready", func() bool {
		status, body := c.ask("/readyz")
		return status == http.StatusOK && body == `{"status":"ok","checks":{"mysql":"ok","messages":"ok"}}`
	})
	status, body := c.ask("/livez")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status":"ok"}`, body)

	require.NoError(t, broker.Client(t).XAdd(t.Context(), &redis.XAddArgs{
		Stream: "payments", Values: map[string]any{"message_id": "evt_1", "payload": "no payment"},
	}).Err())
	eventually(t, "the message is never parked", func() bool {
		_, body := c.ask("/metrics")
		return strings.Contains(body, `oncegate_consumer_parked_total{reason="undecodable"} 1`)
	})
	_, body = c.ask("/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	require.NoError(t, err)
	for _, name := range []string{"oncegate_build_info", "go_goroutines", "process_open_fds", "oncegate_ledger_commit_unknown_total"} {
		require.Contains(t, families, name)
	}
	queries, err := observability.Queries()
	require.NoError(t, err)
	looked := map[string]bool{}
	for _, q := range queries {
		for _, name := range q.Metrics() {
			if strings.HasPrefix(name, "oncegate_consumer_") {
				require.Contains(t, families, name, q.Where)
				looked[name] = true
			}
		}
	}
	for _, name := range []string{"subscribed", "broker_answers", "parked_total", "refunds_owed_total", "lag"} {
		require.True(t, looked["oncegate_consumer_"+name], name)
	}

	for _, path := range []string{"/admin/v1/config", "/admin/v1/stats", "/admin/v1/users/alice", "/"} {
		status, _ := c.ask(path)
		require.Equal(t, http.StatusNotFound, status, path)
	}
	broker.Kill()
	eventually(t, "a broker that is away is never told", func() bool {
		status, body := c.ask("/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, `"messages":"failing"`)
	})
	_, body = c.ask("/metrics")
	require.Contains(t, body, "oncegate_consumer_broker_answers 0", "what the alert looks at")
	broker.Restart()
	eventually(t, "it never recovers", func() bool {
		status, _ := c.ask("/readyz")
		return status == http.StatusOK
	})
}

func TestAConsumerWithoutAnAdminListener(t *testing.T) {
	t.Parallel()
	c := consume(t, payments(t, testserver.StartRedis(t)), "--admin.listen=")
	require.Equal(t, "off", c.admin)
}

func TestAConsumersAdminListenerHasTheGuardsOfAGateway(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	cfg.MySQL.DSN = configs.NewSecret("u:p@tcp(127.0.0.1:1)/shop")
	cfg.Admin.Listen = "0.0.0.0:0"
	open := func() (*App, error) {
		a := &App{log: slog.New(slog.DiscardHandler), grace: time.Minute}
		err := a.openConsumerAdmin(t.Context(), &cfg, prometheus.NewRegistry(), gateway.NewRenderer(cfg.HTTP.ProblemBase), gateway.NewHealth(gateway.HealthOptions{Now: time.Now}))
		t.Cleanup(func() { require.NoError(t, a.Close()) })
		return a, err
	}
	_, err := open()
	require.ErrorContains(t, err, "admin.listen: admin: ")
	require.ErrorContains(t, err, "is not a loopback address, and no token is asked for")

	cfg.Auth.HS256Secret = configs.NewSecret("0123456789abcdef0123456789abcdef")
	a, err := open()
	require.NoError(t, err)
	require.NotEqual(t, "off", a.consumerAddr())
}
