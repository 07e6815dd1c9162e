package client_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/client"
)

// FuzzAdvise: whatever is answered, the advice waits for no negative time, takes
// for the gateway's word only what has its status, and leaves the body as it was.
func FuzzAdvise(f *testing.F) {
	const problem = "application/problem+json"
	f.Add(503, problem, "3", []byte(`{"status":503,"code":"UNAVAILABLE","outcome":"unknown","retryable":true,"retry_after_ms":1500}`))
	f.Add(409, problem, "", []byte(`{"status":409,"code":"IDEMPOTENCY_KEY_REUSED","outcome":"rejected"}`))
	f.Add(422, problem+"; charset=utf-8", "", []byte(`{"status":409,"code":"OUT_OF_STOCK","outcome":"rejected"}`))
	f.Add(429, "text/html", "Fri, 31 Dec 9999 23:59:59 GMT", []byte(`<html>`))
	f.Add(502, "", "-5", []byte{})
	f.Add(503, problem, "99999999999", []byte(`{"status":503,"code":"X","outcome":"y","retry_after_ms":9223372036854775807}`))
	f.Add(201, "application/json", "", []byte(`{}`))
	f.Fuzz(func(t *testing.T, status int, mediaType, after string, body []byte) {
		resp := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {mediaType}, "Retry-After": {after}}, Body: io.NopCloser(bytes.NewReader(body))}
		a := client.Advise(resp, nil)
		require.GreaterOrEqual(t, a.After, client.Advice{}.After)
		if status < http.StatusBadRequest {
			require.Equal(t, client.Advice{}, a)
		}
		if p := a.Problem; p != nil {
			require.Equal(t, status, p.Status)
			require.NotEmpty(t, p.Code)
			require.NotEmpty(t, p.Outcome)
			require.GreaterOrEqual(t, p.RetryAfter(), client.Advice{}.After)
			require.Equal(t, p.Retryable, a.Again)
			require.Contains(t, p.Error(), p.Code)
		}
		left, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, string(body), string(left))
	})
}
