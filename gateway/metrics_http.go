package gateway

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncegate/oncegate/order"
)

// What came of a request that was not decided, in metrics. One that was has the
// kind of its answer.
const (
	cameOK     = "ok"      // 1xx to 3xx
	cameRefuse = "refused" // 4xx: the caller's to change, or to wait for
	cameFail   = "failed"  // 5xx
	cameGone   = "gone"    // nobody was there to read the answer
)

// routeMetrics are the children of one route.
type routeMetrics struct {
	decided                   [order.Accepted + 1]prometheus.Observer // none where nothing is decided
	ok, refused, failed, gone prometheus.Observer
}

// decidingRoutes are those whose requests go through [order.Intake].
func decidingRoutes() []string {
	return []string{"/api/orders", "/order/create_user_order", "/api/order-batches"}
}

func (m *Metrics) route(name string) *routeMetrics {
	child := func(outcome string) prometheus.Observer { return m.http.WithLabelValues(name, outcome) }
	r := &routeMetrics{ok: child(cameOK), refused: child(cameRefuse), failed: child(cameFail), gone: child(cameGone)}
	if slices.Contains(decidingRoutes(), name) {
		for kind := order.Created; int(kind) < len(r.decided); kind++ {
			r.decided[kind] = child(kind.String())
		}
	}
	return r
}

// observe counts a request: by what was decided, if that was answered.
func (r *routeMetrics) observe(decided order.Kind, status int, took time.Duration) {
	to := r.ok
	switch {
	case status == statusClientGone:
		to = r.gone
	case status >= http.StatusInternalServerError:
		to = r.failed
	case int(decided) < len(r.decided) && r.decided[decided] != nil:
		to = r.decided[decided]
	case status >= http.StatusBadRequest:
		to = r.refused
	}
	to.Observe(took.Seconds())
}
