package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/oncegate/oncegate/order"
)

// policy publishes what a client must know to retry rightly.
func (s *Server) policy(x *exchange) {
	t := &x.t
	b := []byte(`{"idempotency_key":{"header":"Idempotency-Key"`)
	b = appendText(b, "pattern", order.KeyPattern)
	b = appendBool(b, "required", t.KeyRequired)
	b = appendInt(b, "reused_status", int64(reusedStatus(t)))
	b = appendBool(b, "refusals_remembered", !s.o.ForgetRejections)
	b = append(b, `},"limits":{`...)
	b = appendInt(b, "order_body_bytes", int64(t.MaxOrderBody))
	b = appendInt(b, "batch_body_bytes", int64(t.MaxBatchBody))
	b = appendInt(b, "batch_rows", int64(min(t.MaxRows, order.MaxLines)))
	b = appendInt(b, "max_wait_seconds", int64(t.MaxWait/time.Second))
	b = appendInt(b, "page_size", maxPage)
	if t.RatePerSecond > 0 {
		b = strconv.AppendFloat(appendMember(b, "rate_per_second"), t.RatePerSecond, 'f', -1, 64)
		b = strconv.AppendFloat(appendMember(b, "rate_burst"), max(1, t.RateBurst), 'f', -1, 64)
	}
	b = append(b, `},"windows":{`...)
	b = appendInt(b, "fast_window_seconds", int64(t.FastWindow/time.Second))
	b = appendInt(b, "response_retention_seconds", int64(t.ResponseRetention/time.Second))
	b = appendText(b, "key_retention", "as long as the order")
	x.body(http.StatusOK, jsonType, append(b, '}', '}'))
}

func reusedStatus(t *Tuning) int {
	if t.ReusedStatus == http.StatusUnprocessableEntity {
		return t.ReusedStatus
	}
	return http.StatusConflict
}

// livez asks nothing: a check that pinged a database would turn its outage into
// a restart of every gateway.
func (s *Server) livez(x *exchange) {
	x.set("Cache-Control", noStore)
	x.body(http.StatusOK, jsonType, []byte(`{"status":"ok"}`))
}

func (s *Server) readyz(x *exchange) {
	status, body := s.o.Health.ready(x.r.Context())
	x.set("Cache-Control", noStore)
	x.body(status, jsonType, body)
}

func (s *Server) openAPI(x *exchange) {
	x.body(http.StatusOK, "application/yaml", s.o.Spec)
}
