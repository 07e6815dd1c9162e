package gateway

import (
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/oncegate/oncegate/order"
)

// openness says who may ask for something without a token.
type openness int

const (
	// forOperators: whoever is on this machine, if [AdminOptions.AllowLoopback].
	forOperators openness = iota
	// forScrapers: the same, and everybody with [AdminOptions.OpenMetrics].
	forScrapers
	// forProbes: whoever can connect, by whatever name; orchestrators have no token.
	forProbes
)

// adminRoute is one thing that the admin listener does. Its method says what a
// token needs for it: see scopeOf.
type adminRoute struct {
	method, path string
	serve        http.HandlerFunc
}

// opennessOf is that of a route.
func opennessOf(path string) openness {
	switch path {
	case "/metrics":
		return forScrapers
	case "/livez", "/readyz":
		return forProbes
	default:
		return forOperators
	}
}

// parametersOf are those of a route's query; ok is false where it is not ours to
// read, as that of a profile.
func parametersOf(path string) (known []string, ok bool) {
	switch path {
	case "/admin/v1/ttl":
		return []string{"ttl", "target"}, true
	case "/admin/v1/config/changes":
		return []string{"limit"}, true
	default:
		return nil, strings.HasPrefix(path, "/admin/")
	}
}

// table is everything that the listener does, but for showing the console.
func (a *Admin) table() []adminRoute {
	metrics := promhttp.HandlerFor(a.o.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true})
	return slices.Concat([]adminRoute{
		{http.MethodGet, "/metrics", metrics.ServeHTTP},
		{http.MethodGet, "/debug/pprof/", a.profile(pprof.Index)},
		{http.MethodGet, "/debug/pprof/cmdline", pprof.Cmdline},
		{http.MethodGet, "/debug/pprof/profile", a.profile(pprof.Profile)},
		{http.MethodGet, "/debug/pprof/symbol", pprof.Symbol},
		{http.MethodGet, "/debug/pprof/trace", a.profile(pprof.Trace)},
		{http.MethodGet, "/admin/v1/access", a.getAccess},
	}, a.healthRoutes(), a.deskRoutes(), a.consoleRoutes(), a.settingsRoutes())
}

// deskRoutes are about users, stock, orders and keys.
func (a *Admin) deskRoutes() []adminRoute {
	if a.o.Accounts == nil {
		return nil
	}
	return []adminRoute{
		{http.MethodPut, "/admin/v1/users/{id}", a.putUser},
		{http.MethodPut, "/admin/v1/stock/{sku}", a.putStock},
		{http.MethodPost, "/admin/v1/orders/{id}/ship", a.shipOrder},
		{http.MethodGet, "/admin/v1/keys/{user}/{key}", a.inspectKey},
	}
}

func (a *Admin) routes() http.Handler {
	mux := http.NewServeMux()
	byPath := map[string][]adminRoute{}
	for _, route := range a.table() {
		byPath[route.path] = append(byPath[route.path], route)
	}
	for path, routes := range byPath {
		mux.Handle(path, a.handle(path, opennessOf(path), a.byMethod(path, routes)))
	}
	a.mountConsole(mux)
	mux.Handle("/", a.handle("none", forOperators, func(w http.ResponseWriter, _ *http.Request) {
		a.problem(w, newProblem(CodeNotFound))
	}))
	return mux
}

// byMethod serves the routes of one path.
func (a *Admin) byMethod(path string, routes []adminRoute) http.HandlerFunc {
	known, ours := parametersOf(path)
	var allowed []string
	for _, route := range routes {
		allowed = append(allowed, route.method)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		for _, route := range routes {
			if r.Method != route.method && (r.Method != http.MethodHead || route.method != http.MethodGet) {
				continue
			}
			if faults := unread(r.URL.RawQuery, known...); ours && len(faults) > 0 {
				a.problem(w, problemOf(&order.InvalidError{Faults: faults}))
				return
			}
			route.serve(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		a.problem(w, newProblem(CodeMethodNotAllowed))
	}
}

// getAccess tells who asks and what that is good for, so that a console can say
// what it cannot do before somebody tries.
func (a *Admin) getAccess(w http.ResponseWriter, r *http.Request) {
	who := operatorOf(r.Context())
	b := appendText([]byte{'{'}, "operator", who.UserID)
	b = appendBool(b, "token", r.Header.Get("Authorization") != "" && a.o.Auth != nil)
	a.answer(w, append(appendBool(b, "write", who.Has(ScopeAdminWrite)), '}'))
}
