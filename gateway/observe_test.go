package gateway_test

import (
	"encoding/json"
	"fmt"
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

// Some clients have one UUID for everything.
func TestARequestIDThatTellsTheKeyIsReplaced(t *testing.T) {
	t.Parallel()
	const uuid = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"
	const hex = "4bf92f3577b34da6a3ce929d0e0e4736"
	k, spans := newTracedKit(t)
	d := newDeskOn(t, k)
	id := func(v string) header { return with("X-Request-Id", v) }
	for name, ask := range map[string]func() reply{
		"an order":           func() reply { return k.post(potstick, key(uuid), id(uuid)) },
		"a quoted key":       func() reply { return k.post(potstick, key(`"`+uuid+`"`), id(uuid)) },
		"an id with more":    func() reply { return k.post(potstick, key(uuid), id("shop-"+uuid+".1")) },
		"without its dashes": func() reply { return k.post(potstick, key(uuid), id(hex)) },
		"a short key":        func() reply { return k.post("{", key("k7"), id("k7")) },
		"a refusal":          func() reply { return k.post("{", key(uuid), id(uuid)) },
		"two keys":           func() reply { return k.post(plain, key("a", uuid), id(uuid)) },
		"no token":           func() reply { return k.do(http.MethodPost, "/api/orders", plain, key(uuid), id(uuid)) },
		"its state":          func() reply { return k.get("/api/requests/"+uuid, id(uuid)) },
		"its state, escaped": func() reply { return k.get("/api/requests/%34"+uuid[1:], id(uuid)) },
		"an operator":        func() reply { return d.ask(here, http.MethodPost, "/admin/v1/keys/alice/"+uuid, "", id(uuid)) },
		"a trace of that id": func() reply { return k.post(potstick, key(uuid), with("Traceparent", "00-"+hex+"-"+callersSpan+"-01")) },
		"its state, by trace": func() reply {
			return k.get("/api/requests/"+uuid, with("Traceparent", "00-"+hex+"-"+callersSpan+"-01"))
		},
	} {
		r := ask()
		require.Len(t, r.header.Get("X-Request-Id"), 32, name)
		require.NotEqual(t, hex, r.header.Get("X-Request-Id"), name)
		require.NotContains(t, r.header.Get("Traceresponse"), hex, name)
		if r.status >= http.StatusBadRequest {
			require.Equal(t, r.header.Get("X-Request-Id"), r.problem(t).RequestID, name)
		}
		require.Equal(t, r.header.Get("X-Request-Id"), k.line()["request_id"], name)
	}
	require.NotContains(t, k.logs.String(), uuid)
	require.NotContains(t, k.logs.String(), hex)
	for _, s := range spans.Ended() {
		require.NotContains(t, fmt.Sprint(s.SpanContext().TraceID(), s.Attributes()), hex)
		require.NotContains(t, fmt.Sprint(s.Attributes()), uuid)
	}
	require.Equal(t, "ask-1", k.post("{", key("k"), id("ask-1")).header.Get("X-Request-Id"), "that a short key is in it tells nothing")
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
	k.exchange("marker-method /api/orders HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	logs := k.logs.String()
	require.NotContains(t, logs, "marker")
	require.NotContains(t, logs, bearer)
	require.NotContains(t, logs, "39.80")
	for _, want := range []string{`"kind":"created"`, `"layer":"mysql"`, `"key_hash":"`, `"digest":"`, `"code":"IDEMPOTENCY_KEY_REUSED"`, `"user":"alice"`, `"level":"WARN"`, `"method":"_OTHER"`} {
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
		"oncegate_decision_duration_seconds created mysql":            1,
		"oncegate_decision_duration_seconds replayed redis":           1,
		"oncegate_undecided_total unknown":                            1,
		"oncegate_retry_age_seconds":                                  1,
		"oncegate_http_problems_total IDEMPOTENCY_KEY_REQUIRED":       1,
		"oncegate_http_problems_total UNAVAILABLE":                    1,
		"oncegate_http_request_duration_seconds created /api/orders":  1,
		"oncegate_http_request_duration_seconds replayed /api/orders": 1,
		"oncegate_duplicates_total redis":                             1,
		"oncegate_duplicates_total mysql":                             0,
		"oncegate_duplicates_total process":                           0,
		"oncegate_http_request_duration_seconds refused /api/orders":  1,
		"oncegate_http_request_duration_seconds failed /api/orders":   1,
		"oncegate_http_in_flight_requests":                            0,
		"oncegate_anomalies_total filter_missed":                      0,
		"oncegate_http_request_duration_seconds ok /api/policy":       0,
		"oncegate_decision_duration_seconds in_progress process":      0,
	} {
		value, ok := got[name]
		require.True(t, ok, name)
		require.InDelta(t, want, value, 0, name)
	}
}

func TestMetricsTellConflictsApart(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	require.Equal(t, http.StatusCreated, k.post(potstick, key("first")).status)
	other := strings.Replace(potstick, `"quantity":2`, `"quantity":3`, 1)
	require.Equal(t, http.StatusConflict, k.post(other, key("first")).status)
	require.Equal(t, http.StatusConflict, k.post(potstick, key("second")).status)
	require.Equal(t, http.StatusConflict, k.post(potstick, key("second")).status, "the refusal, replayed")
	require.Equal(t, http.StatusConflict, k.post(other, key("third")).status)
	require.Equal(t, http.StatusUnprocessableEntity, k.post(`{"sku":"palace","quantity":1,"amount":"999999.00"}`, key("fourth")).status)
	for reason, want := range map[string]float64{"key_reused": 1, "exists": 1, "exists_different": 1, "duplicate_in_batch": 0} {
		require.InDelta(t, want, k.metric("oncegate_conflicts_total", reason), 0, reason)
	}
	for code, want := range map[string]float64{"ORDER_ALREADY_EXISTS": 2, "INSUFFICIENT_BALANCE": 1, "OUT_OF_STOCK": 0} {
		require.InDelta(t, want, k.metric("oncegate_refusals_total", code), 0, code)
	}
	require.InDelta(t, 2, k.metric("oncegate_duplicates_total"), 0)
}

// line is the log line of the last request.
func (k *kit) line() map[string]any {
	k.t.Helper()
	lines := strings.Split(strings.TrimSpace(k.logs.String()), "\n")
	var line map[string]any
	require.NoError(k.t, json.Unmarshal([]byte(lines[len(lines)-1]), &line))
	return line
}

func TestOneLineSaysWhatCameOfARequest(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.post(potstick, key("7f3a55c0-aaaa"))
	line := k.line()
	require.Equal(t, "created", line["kind"])
	require.Equal(t, "mysql", line["layer"])
	require.Equal(t, "7f3", line["key_begins"], "a quarter of the key, and no more")
	require.Len(t, line["key_hash"], 12)
	require.Len(t, line["digest"], 16)
	require.IsType(t, float64(0), line["took_ms"])
	require.NotContains(t, line, "took")
	require.NotContains(t, line, "trace_id")

	rows := `{"orders":[{"sku":"tea","quantity":1,"amount":"1.00","external_order_no":"B-9"},` +
		`{"sku":"potsticker","quantity":2,"amount":"39.80","external_order_no":"B-1"},{"sku":"tea","quantity":1,"amount":"1.00","external_order_no":"B-9"}]}`
	require.Equal(t, http.StatusConflict, k.do(http.MethodPost, "/api/order-batches", rows, as("alice"), key("batch")).status)
	line = k.line()
	require.Equal(t, "rejected", line["kind"])
	require.Equal(t, "ORDER_ALREADY_EXISTS", line["refusal"])
	require.Equal(t, "1:exists 2:duplicate_in_batch", line["conflict_rows"])
	require.Equal(t, "b", line["key_begins"], "of a short key a single character")

	k.ledger.SetFault(func(*order.Command) error { return order.Undecided(order.OutcomeUnknown, order.ErrUnavailable) })
	k.post(plain, key("another"))
	line = k.line()
	require.Equal(t, "UNAVAILABLE", line["code"])
	require.Equal(t, "unknown", line["outcome"])
	require.Equal(t, "WARN", line["level"])
}

func TestTheAdminLineHasNoEmptyFields(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ask(here, http.MethodPut, "/admin/v1/users/carol", `{"balance":"1.00"}`)
	line := d.line()
	require.Equal(t, "admin request", line["msg"])
	require.Equal(t, "loopback", line["operator"])
	require.IsType(t, float64(0), line["took_ms"])
	require.NotContains(t, line, "cause")
	d.ask(elsewhere, http.MethodGet, "/admin/v1/keys/carol/k", "")
	require.NotContains(t, d.line(), "operator", "nobody is known by an empty name")
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
