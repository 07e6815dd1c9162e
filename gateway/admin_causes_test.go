package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// unwell is whatever stands behind the admin listener, and does nothing but fail.
type unwell struct{ err error }

func (u unwell) SetBalance(context.Context, string, order.Amount) error { return u.err }
func (u unwell) SetStock(context.Context, string, int64) error          { return u.err }

func (u unwell) Ship(context.Context, order.ID) (order.Transition, error) {
	return order.Transition{}, u.err
}

func (u unwell) Peek(context.Context, string, order.Key) []order.Glimpse { return nil }

func (u unwell) Find(context.Context, string, order.Key) (order.Receipt, error) {
	return order.Receipt{}, u.err
}

func (u unwell) Settings() gateway.SettingsView { return gateway.SettingsView{Tag: "0"} }
func (u unwell) NearestSetting(string) string   { return "" }

func (u unwell) ChangeSetting(context.Context, gateway.SettingChange) (gateway.SettingChanged, error) {
	return gateway.SettingChanged{}, u.err
}

func (u unwell) SettingChanges(context.Context, int) ([]gateway.SettingChanged, error) {
	return nil, u.err
}

func (u unwell) Authenticate(context.Context, string) (gateway.Identity, error) {
	return gateway.Identity{}, u.err
}

// Operators are told no cause either: the answer names the line of the log that
// tells it.
func TestTheLogTellsWhyAnOperatorWasNotServed(t *testing.T) {
	t.Parallel()
	const change = `{"value":"1h","reason":"a test"}`
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		headers            []header
	}{
		"a balance":             {http.MethodPut, "/admin/v1/users/alice", `{"balance":1}`, 500, nil},
		"stock":                 {http.MethodPut, "/admin/v1/stock/a", `{"available":1}`, 500, nil},
		"shipping":              {http.MethodPost, "/admin/v1/orders/01992f3e-5c1d-7a6b-8f00-3b1f6c2d9e10/ship", "", 500, []header{with("Content-Type", "application/json")}},
		"a look at a key":       {http.MethodGet, "/admin/v1/keys/alice/k", "", 200, nil},
		"a setting":             {http.MethodPut, "/admin/v1/config/ttl.receipt", change, 500, []header{with("If-Match", `"0"`)}},
		"changes of settings":   {http.MethodGet, "/admin/v1/config/changes", "", 500, nil},
		"a token, of no issuer": {http.MethodGet, "/admin/v1/access", "", 503, []header{with("Authorization", "Bearer x")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := unwell{errors.New("no route to 10.0.0.7")}
			d := newDesk(t, func(o *gateway.AdminOptions) {
				o.Desk, o.Settings, o.Auth = gateway.Desk{Accounts: u, Shipper: u, Peeker: u, Finder: u}, u, u
			})
			r := d.ask(here, c.method, c.path, c.body, c.headers...)
			require.Equal(t, c.status, r.status, r.body)
			require.NotContains(t, r.body, "10.0.0.7")
			line := d.line()
			require.Equal(t, "admin request", line["msg"])
			require.Equal(t, r.header.Get("X-Request-Id"), line["request_id"])
			require.Equal(t, u.err.Error(), line["cause"])
			level := map[int]string{http.StatusOK: "INFO", http.StatusInternalServerError: "ERROR", http.StatusServiceUnavailable: "WARN"}[c.status]
			require.Equal(t, level, line["level"], "an outage is not this program's fault")
		})
	}
}

func TestTheLogHoldsNothingOfWhatOperatorsGotWrong(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, c := range []struct{ method, path, body string }{
		{http.MethodPut, "/admin/v1/users/alice", `{"marker":1}`},
		{http.MethodPut, "/admin/v1/stock/a?marker=1", `{"available":1}`},
		{http.MethodGet, "/admin/v1/keys/alice/marker%20", ""},
	} {
		require.Equal(t, http.StatusBadRequest, d.ask(here, c.method, c.path, c.body).status)
	}
	require.Equal(t, http.StatusUnauthorized, d.ask(here, http.MethodGet, "/metrics", "", with("Authorization", "Bearer marker")).status)
	require.Equal(t, 4, strings.Count(d.logs.String(), "admin request"))
	require.NotContains(t, d.logs.String(), "marker")
}
