package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	r := k.post("{", key("k"), with("X-Request-Id", "storefront-7.a_B"))
	require.Equal(t, "storefront-7.a_B", r.header.Get("X-Request-Id"))
	require.Equal(t, "storefront-7.a_B", r.problem(t).RequestID)
	for _, odd := range []string{"", strings.Repeat("a", 65), "a b", `a"b`, "ä", "<x>"} {
		r := k.post("{", key("k"), with("X-Request-Id", odd))
		require.Len(t, r.header.Get("X-Request-Id"), 32, odd)
	}
}

func TestLogsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	bearer := mint("alice", "orders")
	k.post(strings.Replace(potstick, "potsticker", "marker-sku", 1), key("marker-key"), with("Authorization", "Bearer "+bearer))
	k.post(plain, key("marker-key"))
	k.post(`{"marker-member":"marker-value"}`, key("marker-key"))
	k.get("/api/requests/marker-key?marker-query=1")
	k.do(http.MethodGet, "/api/orders", "", with("Authorization", "Bearer marker-token"))
	k.ledger.SetFault(func(*order.Command) error { return order.Undecided(order.OutcomeUnknown, order.ErrUnavailable) })
	k.post(plain, key("marker-key2"))
	logs := k.logs.String()
	require.NotContains(t, logs, "marker")
	require.NotContains(t, logs, bearer)
	require.NotContains(t, logs, "39.80")
	for _, want := range []string{`"kind":"created"`, `"layer":"mysql"`, `"key_hash":"`, `"digest":"`, `"code":"IDEMPOTENCY_KEY_REUSED"`, `"user":"alice"`, `"level":"WARN"`} {
		require.Contains(t, logs, want)
	}
}

func TestMetricsCountWithoutNamingAnybody(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.post(potstick, key("k1"))
	k.post(potstick, key("k1"))
	k.post(plain)
	k.ledger.SetFault(func(*order.Command) error { return order.Undecided(order.OutcomeUnknown, order.ErrUnavailable) })
	k.post(plain, key("k2"))
	families, err := k.reg.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
				require.NotContains(t, l.GetValue(), "alice")
			}
			got[name] += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount()) + m.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"oncegate_decision_duration_seconds created mysql":       1,
		"oncegate_decision_duration_seconds replayed redis":      1,
		"oncegate_undecided_total unknown":                       1,
		"oncegate_retry_age_seconds":                             1,
		"oncegate_http_problems_total IDEMPOTENCY_KEY_REQUIRED":  1,
		"oncegate_http_problems_total UNAVAILABLE":               1,
		"oncegate_http_request_duration_seconds 2xx /api/orders": 2,
		"oncegate_http_request_duration_seconds 4xx /api/orders": 1,
		"oncegate_http_request_duration_seconds 5xx /api/orders": 1,
		"oncegate_http_in_flight_requests":                       0,
		"oncegate_anomalies_total filter_missed":                 0,
		"oncegate_http_request_duration_seconds 2xx /api/policy": 0,
		"oncegate_decision_duration_seconds in_progress process": 0,
	} {
		value, ok := got[name]
		require.True(t, ok, name)
		require.InDelta(t, want, value, 0, name)
	}
}

// metric is the sum of a metric's children that have these label values.
func (k *kit) metric(name string, labels ...string) (sum float64) {
	k.t.Helper()
	families, err := k.reg.Gather()
	require.NoError(k.t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	children:
		for _, m := range f.GetMetric() {
			for i, l := range m.GetLabel() {
				if i < len(labels) && l.GetValue() != labels[i] {
					continue children
				}
			}
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}
