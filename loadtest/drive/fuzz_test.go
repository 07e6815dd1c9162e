package drive

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/wire"
)

// FuzzName: whatever is answered, only a success makes an order and only a refusal
// with its own status decides; what may have had an effect is never said to have
// had none; what is no answer of the contract keeps its body for the finding; and
// no answer makes the harness wait for ever.
func FuzzName(f *testing.F) {
	f.Add(byte(history.Submit), 201, "true", "", []byte(`{"order_id":"a"}`))
	f.Add(byte(history.Other), 422, "", "", []byte(`{"code":"IDEMPOTENCY_KEY_REUSED","outcome":"rejected"}`))
	f.Add(byte(history.Submit), 409, "", "1", []byte(`{"code":"REQUEST_IN_PROGRESS","outcome":"unknown","retry_after_ms":1}`))
	f.Add(byte(history.Submit), 422, "true", "", []byte(`{"code":"OUT_OF_STOCK","outcome":"rejected"}`))
	f.Add(byte(history.Submit), 500, "", "-1", []byte(`{"code":"OUT_OF_STOCK","retry_after_ms":9223372036854775807}`))
	f.Add(byte(history.Submit), 503, "", "99999999999", []byte(`{"outcome":"not_committed"}`))
	f.Add(byte(history.Status), 200, "", "", []byte(`{"state":"succeeded"}`))
	f.Add(byte(history.Status), 200, "", "", []byte(`<html>`))
	f.Add(byte(history.Callback), 204, "", "", []byte(nil))
	f.Fuzz(func(t *testing.T, kind byte, status int, again, after string, body []byte) {
		op := history.Op(kind % 4)
		header := http.Header{"Idempotent-Replayed": {again}, "Retry-After": {after}}
		a := name(op, &wire.Exchange{Status: status, Header: header, Body: body})
		order, success := op <= history.Other, status/100 == 2
		require.Equal(t, success && order, a.Outcome == measure.Created || a.Outcome == measure.Replayed)
		require.Equal(t, success && op == history.Callback, a.Outcome == measure.Accepted)
		if a.Outcome == measure.Read {
			require.Equal(t, history.Status, op)
			require.Equal(t, status == http.StatusOK, slices.Contains([]string{"in_progress", "succeeded", "failed"}, a.State))
		}
		refused := a.Outcome == measure.Rejected && (status == http.StatusConflict || status == http.StatusUnprocessableEntity)
		require.Equal(t, success && op != history.Status || refused, a.Proof == history.Decided)
		if status >= 500 && a.Proof == history.NoEffect {
			var p map[string]any
			require.NoError(t, json.Unmarshal(body, &p))
			require.Contains(t, []any{"not_committed", "rejected"}, p["outcome"])
		}
		if a.Outcome == measure.Unexpected {
			require.Equal(t, body, a.Body)
		}
		require.GreaterOrEqual(t, a.retryAfter, time.Duration(0))
		require.LessOrEqual(t, a.retryAfter, time.Hour)
		_ = orderID(body)
	})
}
