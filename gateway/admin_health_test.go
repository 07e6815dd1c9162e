package gateway_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// TestAProcessWithoutAPublicListenerTellsItsHealthHere is what a consumer of
// messages has: no users, keys or settings, but the same guards.
func TestAProcessWithoutAPublicListenerTellsItsHealthHere(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	health := gateway.NewHealth(gateway.HealthOptions{
		Checks: []gateway.Check{{Name: "messages", Critical: true, Func: func(context.Context) error {
			if broken.Load() {
				return order.ErrUnavailable
			}
			return nil
		}}},
		Now: time.Now, Logger: slog.New(slog.DiscardHandler), TTL: time.Nanosecond,
	})
	d := newDesk(t, func(o *gateway.AdminOptions) { o.Desk, o.Health = gateway.Desk{}, health })
	for _, peer := range []string{here, elsewhere} {
		require.JSONEq(t, `{"status":"ok"}`, d.ask(peer, http.MethodGet, "/livez", "").body)
		require.JSONEq(t, `{"status":"ok","checks":{"messages":"ok"}}`, d.ask(peer, http.MethodGet, "/readyz", "").body)
		r := d.fetch(peer, "/readyz", with("Origin", "https://evil.example"))
		require.Equal(t, http.StatusForbidden, r.status, "not for pages of other sites")
		for _, name := range []string{"consumer:9090", "oncegate.shop.svc.cluster.local:9090", "lb.example.com"} {
			byName := with("Host", name)
			require.Equal(t, http.StatusOK, d.ask(peer, http.MethodGet, "/livez", "", byName).status, name)
			require.Equal(t, http.StatusOK, d.ask(peer, http.MethodGet, "/readyz", "", byName).status, name)
			for _, of := range []header{with("Origin", "https://evil.example"), with("Sec-Fetch-Site", "cross-site")} {
				require.Equal(t, http.StatusForbidden, d.fetch(peer, "/readyz", byName, of).status, name)
			}
			require.Equal(t, http.StatusForbidden, d.ask(peer, http.MethodGet, "/metrics", "", byName).status, "health, and nothing else")
		}
	}
	require.Equal(t, http.StatusOK, d.ask(here, http.MethodGet, "/metrics", "").status)
	require.Equal(t, http.StatusUnauthorized, d.ask(elsewhere, http.MethodGet, "/metrics", "").status)
	require.Equal(t, http.StatusOK, d.ask(elsewhere, http.MethodGet, "/metrics", "", as("ops", gateway.ScopeAdminRead)).status)
	require.Equal(t, http.StatusNotFound, d.ask(here, http.MethodPut, "/admin/v1/users/zoe", `{"balance":1}`).status)

	broken.Store(true)
	r := d.ask(elsewhere, http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.JSONEq(t, `{"status":"unavailable","checks":{"messages":"failing"}}`, r.body)
	broken.Store(false)
	health.Drain()
	require.JSONEq(t, `{"status":"draining"}`, d.ask(here, http.MethodGet, "/readyz", "").body)
	require.Equal(t, http.StatusOK, d.ask(here, http.MethodGet, "/livez", "").status)
}
