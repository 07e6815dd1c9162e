package gateway

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The example that implementations of the standard share.
func TestSignaturesAreThoseOfTheStandard(t *testing.T) {
	t.Parallel()
	const body = `{"test": 2432232314}`
	w, err := NewWebhooks([]string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
	require.NoError(t, err)
	h := http.Header{}
	h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("webhook-timestamp", "1614265330")
	h.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	require.NoError(t, w.verify([]byte(body), h))
	require.ErrorIs(t, w.verify([]byte(body+" "), h), errWebhookSignature)
	sent := time.Unix(1614265330, 0)
	for _, off := range []time.Duration{-webhookTolerance, 0, webhookTolerance} {
		require.NoError(t, w.timely(h, sent.Add(off)), off)
	}
	for _, off := range []time.Duration{-webhookTolerance - time.Second, webhookTolerance + time.Second} {
		require.ErrorIs(t, w.timely(h, sent.Add(off)), errWebhookTime, off)
	}
}

func TestWeakWebhookSecretsAreRefused(t *testing.T) {
	t.Parallel()
	good := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	for _, secrets := range [][]string{nil, {}, {""}, {"whsec_"}, {good, ""}, {good, "c2hvcnQ="}, {"not base64, marker"}} {
		_, err := NewWebhooks(secrets)
		require.Error(t, err, secrets)
		require.NotContains(t, err.Error(), "marker")
	}
	_, err := NewWebhooks([]string{good, good[len("whsec_"):]})
	require.NoError(t, err)
}
