package drive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/wire"
)

// What comes close to a name of the contract is not that name.
func TestAnswersAreReadByExactNames(t *testing.T) {
	t.Parallel()
	for body, tc := range map[string]struct {
		op     history.Op
		status int
		want   measure.Outcome
		proof  history.Proof
	}{
		`{"Code":"REQUEST_IN_PROGRESS"}`:                               {history.Submit, 409, measure.Unexpected, history.NoEffect},
		`{"code":"REQUEST_IN_PROGRESS","code":"REQUEST_IN_PROGRESS"}`:  {history.Submit, 409, measure.Unexpected, history.NoEffect},
		`{"CODE":"OUT_OF_STOCK"}`:                                      {history.Submit, 422, measure.Unexpected, history.NoEffect},
		`{"Outcome":"not_committed"}`:                                  {history.Submit, 503, measure.Unavailable, history.Unknown},
		`{"outcome":"unknown","Outcome":"not_committed"}`:              {history.Submit, 503, measure.Unavailable, history.Unknown},
		`{"outcome":"unknown","outcome":"not_committed"}`:              {history.Submit, 503, measure.Unavailable, history.Unknown},
		`{"State":"succeeded"}`:                                        {history.Status, 200, measure.Unexpected, history.NoEffect},
		`{"state":"succeeded","State":"failed"}`:                       {history.Status, 200, measure.Read, history.NoEffect},
		`{"state":"in_progress","state":"succeeded"}`:                  {history.Status, 200, measure.Unexpected, history.NoEffect},
		`{"code":"REQUEST_IN_PROGRESS","Code":"","retry_after_ms":""}`: {history.Submit, 409, measure.InProgress, history.NoEffect},
	} {
		a := name(tc.op, &wire.Exchange{Status: tc.status, Body: []byte(body)})
		require.Equal(t, tc.want, a.Outcome, body)
		require.Equal(t, tc.proof, a.Proof, body)
	}
	require.Equal(t, "a", orderID([]byte(`{"order_id":"a","Order_ID":"b"}`)))
	require.Empty(t, orderID([]byte(`{"Order_ID":"b"}`)))
	a := name(history.Submit, &wire.Exchange{Status: 503, Body: []byte(`{"retry_after_ms":20,"Retry_After_Ms":60000}`)})
	require.Equal(t, 20*time.Millisecond, a.retryAfter)
}
