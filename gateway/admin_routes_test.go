package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
)

// whole is an admin listener that has every route.
func whole(t *testing.T) *watched {
	t.Helper()
	return newWatched(t, func(o *gateway.AdminOptions) { o.Settings, o.AllowLoopback = &settingsFake{}, false })
}

// sampleOf fills the wildcards of a route with a value that each of them takes.
func sampleOf(path string) string {
	return strings.NewReplacer(
		"{id}", "01890a5d-ac96-774b-bcce-b302099a8057", "{sku}", "s", "{user}", "u", "{key}", "k", "{name}", "ttl.receipt",
	).Replace(path)
}

// try asks as somebody who has gone already: events and profiles end at once
// then, and the guards are before them.
func (w *watched) try(r gateway.Route, scopes ...string) reply {
	w.t.Helper()
	ctx, gone := context.WithCancel(w.t.Context())
	gone()
	req := httptest.NewRequestWithContext(ctx, r.Method, sampleOf(r.Path), http.NoBody)
	req.Host, req.RemoteAddr = "127.0.0.1:9090", elsewhere
	if len(scopes) > 0 {
		as("ops", scopes...)(req.Header)
	}
	rec := httptest.NewRecorder()
	w.admin.Handler().ServeHTTP(rec, req)
	return reply{rec.Code, rec.Header(), rec.Body.String()}
}

func TestEveryRouteOfTheAdminListenerWantsItsScope(t *testing.T) {
	t.Parallel()
	w := whole(t)
	routes := w.admin.Routes()
	require.Greater(t, len(routes), 15)
	changing := 0
	for _, r := range routes {
		writes := r.Method != http.MethodGet
		needed := gateway.ScopeAdminRead
		if writes {
			needed = gateway.ScopeAdminWrite
			changing++
		}
		require.Equal(t, http.StatusUnauthorized, w.try(r).status, "%v without a token", r)
		for scopes, allowed := range map[string]bool{
			gateway.ScopeOrders:     false,
			"admin.other":           false,
			"Admin":                 false,
			gateway.ScopeAdminRead:  !writes,
			gateway.ScopeAdminWrite: true,
			gateway.ScopeAdmin:      true,
			gateway.ScopeOrders + " " + gateway.ScopeAdminRead: !writes,
		} {
			a := w.try(r, strings.Fields(scopes)...)
			if allowed {
				require.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed}, a.status, "%v with %s", r, scopes)
				continue
			}
			require.Equal(t, http.StatusForbidden, a.status, "%v with %s", r, scopes)
			require.Contains(t, a.header.Get("WWW-Authenticate"), `error="insufficient_scope", scope="`+needed+`"`, "%v with %s", r, scopes)
		}
		if !writes {
			head := gateway.Route{Method: http.MethodHead, Path: r.Path}
			require.Equal(t, http.StatusForbidden, w.try(head, gateway.ScopeOrders).status, "%v", head)
			continue
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, "PROPFIND"} {
			other := gateway.Route{Method: method, Path: r.Path}
			require.Equal(t, http.StatusForbidden, w.try(other, gateway.ScopeAdminRead).status, "%v", other)
		}
	}
	require.Equal(t, 4, changing)
}

func TestTheDocumentSaysTheScopeOfEveryAdminRoute(t *testing.T) {
	t.Parallel()
	w := whole(t)
	doc := document(t)
	documented := map[gateway.Route]*openapi3.Operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if slices.Contains(op.Tags, "admin") {
				documented[gateway.Route{Method: method, Path: path}] = op
			}
		}
	}
	for _, r := range w.admin.Routes() {
		if strings.HasPrefix(r.Path, "/debug/") {
			continue // that of net/http/pprof
		}
		op := documented[r]
		require.NotNil(t, op, "%v is not in the document", r)
		delete(documented, r)
		needed := gateway.ScopeAdminWrite
		if r.Method == http.MethodGet {
			needed = gateway.ScopeAdminRead
		}
		require.NotNil(t, op.Security, "%v", r)
		var scopes []string
		for _, requirement := range *op.Security {
			for _, of := range requirement {
				scopes = append(scopes, of...)
			}
		}
		require.Equal(t, []string{needed}, scopes, "%v", r)
	}
	require.Empty(t, documented, "in the document, but not served")
}

func TestAConsoleIsToldWhatItMayDo(t *testing.T) {
	t.Parallel()
	w := whole(t)
	ask := func(headers ...header) string {
		return w.ask(elsewhere, http.MethodGet, "/admin/v1/access", "", headers...).body
	}
	require.JSONEq(t, `{"operator":"ann","token":true,"write":false}`, ask(as("ann", gateway.ScopeAdminRead)))
	require.JSONEq(t, `{"operator":"ann","token":true,"write":true}`, ask(as("ann", gateway.ScopeAdminWrite)))
	require.JSONEq(t, `{"operator":"ann","token":true,"write":true}`, ask(as("ann", gateway.ScopeAdmin)))
	d := newDesk(t)
	require.JSONEq(t, `{"operator":"loopback","token":false,"write":true}`, d.ask(here, http.MethodGet, "/admin/v1/access", "").body)
}
