package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/internal/testserver"
)

// A balancer sends no orders to gateways that are not ready, so that none fails
// and no rate tells of a database that is away: this gauge does.
func TestMetricsSayWhichCheckFails(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	health := gateway.NewHealth(gateway.HealthOptions{
		Checks: []gateway.Check{
			{Name: "mysql", Critical: true, Func: func(context.Context) error {
				if away.Load() {
					return errors.New("connection refused")
				}
				return nil
			}},
			{Name: "redis", Func: func(context.Context) error { return nil }},
		},
		Now: time.Now, Logger: slog.New(slog.DiscardHandler), TTL: time.Nanosecond,
	})
	registry := prometheus.NewRegistry()
	require.NoError(t, registerHealth(registry, health))
	for _, c := range []struct {
		away  bool
		mysql float64
	}{{false, 1}, {true, 0}, {false, 1}} {
		away.Store(c.away)
		families, err := registry.Gather()
		require.NoError(t, err)
		require.Len(t, families, 1)
		require.Equal(t, "oncegate_health_check_ok", families[0].GetName())
		values := map[string]float64{}
		for _, m := range families[0].GetMetric() {
			values[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
		require.Equal(t, map[string]float64{"mysql": c.mysql, "redis": 1}, values)
	}
}

func TestAConsumerTellsWhichCheckFails(t *testing.T) {
	t.Parallel()
	broker := testserver.StartRedis(t)
	c := consume(t, payments(t, broker))
	tells := func(sample string) func() bool {
		return func() bool {
			status, text := c.ask("/metrics")
			return status == http.StatusOK && strings.Contains(text, sample)
		}
	}
	eventually(t, "the checks are never seen to pass", tells(`oncegate_health_check_ok{check="messages"} 1`))
	eventually(t, "the database is never seen to be there", tells(`oncegate_health_check_ok{check="mysql"} 1`))
	broker.Kill()
	eventually(t, "a broker that is away is never told", tells(`oncegate_health_check_ok{check="messages"} 0`))
}
