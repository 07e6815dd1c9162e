package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/client"
)

// refusal is a problem that is not to be retried.
func refusal(status int, code, outcome string, safeNewKey bool) http.HandlerFunc {
	return problem(status, fmt.Sprintf(`{"status":%d,"code":%q,"outcome":%q,"retryable":false,"safe_new_key":%t}`,
		status, code, outcome, safeNewKey))
}

// unheard are the ways in which an attempt may make an order that its caller does
// not hear of.
var unheard = map[string]http.HandlerFunc{
	"no answer":                cut,
	"a proxy's bad gateway":    status(http.StatusBadGateway),
	"an earlier one running":   problem(http.StatusConflict, running),
	"database away at the end": problem(http.StatusServiceUnavailable, away),
}

// turnedAway are refusals of which the gateway makes up its mind before it looks
// for an order with the key, or without being able to.
var turnedAway = map[string]http.HandlerFunc{
	"UNAUTHENTICATED":          refusal(401, "UNAUTHENTICATED", "rejected", false),
	"FORBIDDEN":                refusal(403, "FORBIDDEN", "rejected", false),
	"USER_UNKNOWN":             refusal(403, "USER_UNKNOWN", "not_committed", false),
	"BODY_TOO_LARGE":           refusal(413, "BODY_TOO_LARGE", "rejected", false),
	"INVALID_REQUEST":          refusal(400, "INVALID_REQUEST", "rejected", false),
	"INTERNAL":                 problem(500, fault),
	"IDEMPOTENCY_KEY_REQUIRED": refusal(400, "IDEMPOTENCY_KEY_REQUIRED", "rejected", true),
	"IDEMPOTENCY_KEY_INVALID":  refusal(400, "IDEMPOTENCY_KEY_INVALID", "rejected", true),
	"IDEMPOTENCY_KEY_REUSED":   refusal(409, "IDEMPOTENCY_KEY_REUSED", "rejected", true),
}

// verdicts are given with the order's record in view.
var verdicts = map[string]http.HandlerFunc{
	"INSUFFICIENT_BALANCE": problem(422, broke),
	"OUT_OF_STOCK":         refusal(422, "OUT_OF_STOCK", "rejected", true),
	"ORDER_ALREADY_EXISTS": refusal(409, "ORDER_ALREADY_EXISTS", "rejected", true),
	"EXECUTION_FAILED":     refusal(500, "EXECUTION_FAILED", "rejected", true),
}

func TestAnAttemptThatIsTurnedAwayDoesNotSettleTheOneBefore(t *testing.T) {
	t.Parallel()
	for before, lost := range unheard {
		for code, refused := range turnedAway {
			t.Run(before+", then "+code, func(t *testing.T) {
				t.Parallel()
				server := play(t, lost, refused)
				shop := quick(t, server.URL)
				_, err := shop.CreateOrder(t.Context(), "intent", dumplings)
				var unsettled *client.UnsettledError
				require.ErrorAs(t, err, &unsettled)
				require.Equal(t, 2, unsettled.Attempts)
				var last *client.Problem
				require.ErrorAs(t, unsettled.Last, &last)
				require.Equal(t, code, last.Code)
				require.ErrorIs(t, shop.Renew(t.Context(), "intent", err), client.ErrKeyKept)
				require.ErrorIs(t, shop.Renew(t.Context(), "intent", unsettled.Last), client.ErrKeyKept)

				_, err = shop.CreateOrder(t.Context(), "intent", dumplings)
				require.NoError(t, err)
				server.oneKey(t)
			})
		}
	}
}

func TestAVerdictSettlesTheAttemptsBefore(t *testing.T) {
	t.Parallel()
	for before, lost := range unheard {
		for code, refused := range verdicts {
			t.Run(before+", then "+code, func(t *testing.T) {
				t.Parallel()
				server := play(t, lost, refused)
				shop := quick(t, server.URL)
				_, err := shop.CreateOrder(t.Context(), "intent", dumplings)
				require.NotErrorIs(t, err, client.ErrUnsettled)
				var p *client.Problem
				require.ErrorAs(t, err, &p)
				require.Equal(t, code, p.Code)
				require.True(t, p.Verdict())
				require.NoError(t, shop.Renew(t.Context(), "intent", err))
			})
		}
	}
}

// An earlier call may have made the order, so that it takes a verdict to give the
// key up, even where the gateway sees no risk.
func TestWhatIsNoVerdictKeepsTheKey(t *testing.T) {
	t.Parallel()
	for code, refused := range turnedAway {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			server := play(t, refused)
			shop := quick(t, server.URL)
			_, err := shop.CreateOrder(t.Context(), "intent", dumplings)
			var p *client.Problem
			require.ErrorAs(t, err, &p)
			require.NotErrorIs(t, err, client.ErrUnsettled, "this call has made nothing")
			require.False(t, p.Verdict())
			require.ErrorIs(t, shop.Renew(t.Context(), "intent", err), client.ErrKeyKept)
			_, err = shop.CreateOrder(t.Context(), "intent", dumplings)
			require.NoError(t, err)
			server.oneKey(t)
		})
	}
}

func TestAnUnknownOutcomeIsNotSettledByBeingFinal(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]http.HandlerFunc{
		"unknown":                   refusal(500, "INTERNAL", "unknown", false),
		"a word that is not known":  refusal(500, "INTERNAL", "perhaps", false),
		"unknown with a known code": refusal(422, "INSUFFICIENT_BALANCE", "unknown", true),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := play(t, scene)
			_, err := quick(t, server.URL).CreateOrder(t.Context(), "intent", dumplings)
			require.ErrorIs(t, err, client.ErrUnsettled)
			require.Equal(t, 1, server.requests())
		})
	}
}

func TestWhatMadeNothingLeavesTheRefusalFinal(t *testing.T) {
	t.Parallel()
	overloaded := problem(503, `{"status":503,"code":"OVERLOADED","outcome":"not_committed","retryable":true,"retry_after_ms":1}`)
	server := play(t, overloaded, turnedAway["UNAUTHENTICATED"])
	_, err := quick(t, server.URL).CreateOrder(t.Context(), "intent", dumplings)
	require.NotErrorIs(t, err, client.ErrUnsettled)
	var p *client.Problem
	require.ErrorAs(t, err, &p)
	require.Equal(t, "UNAUTHENTICATED", p.Code)
	require.Equal(t, 2, server.requests())
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A transport of the caller's need not tell what it gives to connections.
func TestATransportThatTellsNothingMayHaveSent(t *testing.T) {
	t.Parallel()
	tokens := 0
	shop := quick(t, "http://gateway.invalid", func(o *client.Options) {
		o.HTTP = &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			return nil, errors.New("the answer did not come")
		})}
		o.Token = func(context.Context) (string, error) {
			if tokens++; tokens == 2 {
				return "", errors.New("the issuer is away")
			}
			return "token", nil
		}
	})
	_, err := shop.CreateOrder(t.Context(), "intent", dumplings)
	require.ErrorIs(t, err, client.ErrUnsettled)
	require.ErrorContains(t, err, "the issuer is away")
}
