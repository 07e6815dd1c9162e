package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
)

func TestReadinessFollowsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	away := errors.New("dial tcp 10.0.0.7:3306: refused")
	r := k.do(http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusOK, r.status)
	require.JSONEq(t, `{"status":"ok","checks":{"mysql":"ok","redis":"ok"}}`, r.body)

	k.broken[1].Store(&away)
	r = k.do(http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusOK, r.status, "Redis is advice")
	require.JSONEq(t, `{"status":"degraded","checks":{"mysql":"ok","redis":"failing"}}`, r.body)

	k.broken[0].Store(&away)
	r = k.do(http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.NotContains(t, r.body, "10.0.0.7")
	require.Equal(t, http.StatusOK, k.do(http.MethodGet, "/livez", "").status, "an outage must not restart gateways")

	k.broken[0].Store(nil)
	k.broken[1].Store(nil)
	k.health.Drain()
	r = k.do(http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.JSONEq(t, `{"status":"draining"}`, r.body)
	require.Equal(t, http.StatusServiceUnavailable, k.do(http.MethodHead, "/readyz", "").status)
}

func TestProbesDoNotHammerAndCannotHang(t *testing.T) {
	t.Parallel()
	var rounds atomic.Int32
	k := newKit(t, func(o *gateway.Options) {
		o.Health = gateway.NewHealth(gateway.HealthOptions{
			Checks: []gateway.Check{{Name: "mysql", Critical: true, Func: func(ctx context.Context) error {
				rounds.Add(1)
				<-ctx.Done()
				return ctx.Err()
			}}},
			Now: time.Now, Logger: slog.New(slog.DiscardHandler), Timeout: 10 * time.Millisecond, TTL: time.Hour,
		})
	})
	for range 20 {
		require.Equal(t, http.StatusServiceUnavailable, k.do(http.MethodGet, "/readyz", "").status)
	}
	require.Equal(t, int32(1), rounds.Load())
}
