package drive

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/wire"
)

func TestAnswersGetTheirNames(t *testing.T) {
	t.Parallel()
	replay := http.Header{"Idempotent-Replayed": {"true"}}
	for what, tc := range map[string]struct {
		op    history.Op
		x     wire.Exchange
		want  measure.Outcome
		proof history.Proof
	}{
		"created":            {history.Submit, wire.Exchange{Status: 201}, measure.Created, history.Decided},
		"replayed":           {history.Submit, wire.Exchange{Status: 201, Header: replay}, measure.Replayed, history.Decided},
		"in progress":        {history.Submit, wire.Exchange{Status: 409, Body: []byte(`{"code":"REQUEST_IN_PROGRESS"}`)}, measure.InProgress, history.NoEffect},
		"reused":             {history.Other, wire.Exchange{Status: 422, Body: []byte(`{"code":"IDEMPOTENCY_KEY_REUSED"}`)}, measure.Reused, history.NoEffect},
		"refused as a fault": {history.Submit, wire.Exchange{Status: 500, Body: []byte(`{"code":"OUT_OF_STOCK"}`)}, measure.Unexpected, history.Unknown},
		"refused in a 200":   {history.Submit, wire.Exchange{Status: 200, Body: []byte(`{"code":"OUT_OF_STOCK"}`)}, measure.Created, history.Decided},
		"number taken":       {history.Submit, wire.Exchange{Status: 409, Body: []byte(`{"code":"ORDER_ALREADY_EXISTS"}`)}, measure.Rejected, history.Decided},
		"refused and away":   {history.Submit, wire.Exchange{Status: 503, Body: []byte(`{"outcome":"rejected"}`)}, measure.Unavailable, history.NoEffect},
		"a portal's page":    {history.Status, wire.Exchange{Status: 200, Body: []byte(`<html>`)}, measure.Unexpected, history.NoEffect},
		"another state":      {history.Status, wire.Exchange{Status: 200, Body: []byte(`{"state":"done"}`)}, measure.Unexpected, history.NoEffect},
		"refused":            {history.Submit, wire.Exchange{Status: 422, Body: []byte(`{"code":"OUT_OF_STOCK"}`)}, measure.Rejected, history.Decided},
		"limited":            {history.Submit, wire.Exchange{Status: 429}, measure.Limited, history.NoEffect},
		"a proxy's 502":      {history.Submit, wire.Exchange{Status: 502, Body: []byte(`<html>`)}, measure.Unavailable, history.Unknown},
		"a proven no":        {history.Submit, wire.Exchange{Status: 503, Body: []byte(`{"outcome":"not_committed"}`)}, measure.Unavailable, history.NoEffect},
		"an honest 503":      {history.Submit, wire.Exchange{Status: 503, Body: []byte(`{"outcome":"unknown"}`)}, measure.Unavailable, history.Unknown},
		"a fault inside":     {history.Submit, wire.Exchange{Status: 500}, measure.Unexpected, history.Unknown},
		"bad request":        {history.Submit, wire.Exchange{Status: 400}, measure.Unexpected, history.NoEffect},
		"read":               {history.Status, wire.Exchange{Status: 200, Body: []byte(`{"state":"succeeded"}`)}, measure.Read, history.NoEffect},
		"not found":          {history.Status, wire.Exchange{Status: 404}, measure.Read, history.NoEffect},
		"callback":           {history.Callback, wire.Exchange{Status: 200}, measure.Accepted, history.Decided},
		"timeout":            {history.Submit, wire.Exchange{Fault: wire.FaultTimeout, Wrote: true}, measure.Timeout, history.Unknown},
		"broken":             {history.Submit, wire.Exchange{Fault: wire.FaultBroken, Wrote: true}, measure.Transport, history.Unknown},
		"refused to talk":    {history.Submit, wire.Exchange{Fault: wire.FaultRefused}, measure.Transport, history.NeverSent},
		"no socket":          {history.Submit, wire.Exchange{Fault: wire.FaultClient}, measure.ClientLimit, history.NeverSent},
		"stopped the run":    {history.Submit, wire.Exchange{Fault: wire.FaultAborted, Wrote: true}, measure.HungUp, history.Unknown},
		"created by a GET":   {history.Status, wire.Exchange{Status: 201}, measure.Unexpected, history.NoEffect},
	} {
		a := name(tc.op, &tc.x)
		require.Equal(t, tc.want, a.Outcome, what)
		require.Equal(t, tc.proof, a.Proof, what)
	}
}

func TestRetryAfterIsReadFinely(t *testing.T) {
	t.Parallel()
	a := name(history.Submit, &wire.Exchange{Status: 409, Header: http.Header{"Retry-After": {"1"}}, Body: []byte(`{"code":"REQUEST_IN_PROGRESS","retry_after_ms":120}`)})
	require.Equal(t, 120*time.Millisecond, a.retryAfter)
	a = name(history.Submit, &wire.Exchange{Status: 429, Header: http.Header{"Retry-After": {"2"}}})
	require.Equal(t, 2*time.Second, a.retryAfter)
	a = name(history.Submit, &wire.Exchange{Status: 503, Body: []byte(`{"retry_after_ms":9223372036854775807}`)})
	require.Equal(t, time.Hour, a.retryAfter, "it is not so long that it is none")
}

func TestCallbacksAreSigned(t *testing.T) {
	t.Parallel()
	s, err := NewSigner("whsec_" + base64.StdEncoding.EncodeToString([]byte("secret")))
	require.NoError(t, err)
	bare, err := NewSigner(base64.StdEncoding.EncodeToString([]byte("secret")))
	require.NoError(t, err)
	require.Equal(t, s, bare, "the same secret, as some providers show it")
	it := &scenario.Intent{Key: "k", Lines: []scenario.Line{{Hundredths: 1205}}}
	r := s.request(it, "id", time.Unix(1700000000, 0))
	mac := hmac.New(sha256.New, []byte("secret"))
	mac.Write([]byte("msg-k.1700000000."))
	mac.Write(r.Body)
	require.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), r.Fields[2].Value)
	require.Contains(t, string(r.Body), `"amount":"12.05"`)
	require.Equal(t, r.Body, s.request(it, "id", time.Unix(1700000001, 0)).Body, "copies of a message are the same")
	for _, bad := range []string{"", "whsec_", "whsec_!"} {
		_, err := NewSigner(bad)
		require.Error(t, err)
	}
}

func TestSleepIsNotEarly(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(5 * time.Millisecond)
	require.True(t, SleepUntil(t.Context(), at))
	require.False(t, time.Now().Before(at))
}
