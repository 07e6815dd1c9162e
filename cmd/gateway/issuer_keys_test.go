package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
)

// RFC 7517, section 5: what is not understood is passed over.
func TestAKeyThatCannotBeUsedDoesNotTakeTheOthersAlong(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	key := p.publish(t, "one")
	p.alongside(
		`null`, `1`, `{}`, `{"kty":"RSA","kid":"none"}`, `{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}`, `{"kty":"none of RFC 7518"}`,
		`{"kty":"oct","kid":"two","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}`, `{"kty":"RSA","n":"AQAB","e":"AQAB","x5c":["nonsense"]}`,
		`{"kty":"RSA","n":"AQAB","e":"AQAB","use":"none of RFC 7517"}`,
	)
	v := follower(t, p, never)
	_, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "one", key))
	require.NoError(t, err)
}

func TestAKeyThatIsNotForSignaturesSignsNothing(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.publish(t, "one")
	other := newPublisher(t).publish(t, "two")
	operations := func(text string) string {
		return strings.Replace(published(t, "two", "sig", other), `"use":"sig"`, `"key_ops":`+text, 1)
	}
	for _, c := range []struct {
		key     string
		believe bool
	}{
		{published(t, "two", "enc", other), false},
		{published(t, "two", "", other), true},
		{operations(`["deriveKey"]`), false},
		{operations(`["deriveKey","verify"]`), true},
		{operations(`[]`), true},
	} {
		p.alongside(c.key)
		v := follower(t, p, time.Nanosecond)
		_, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "two", other))
		require.Equal(t, c.believe, err == nil, "%s: %v", c.key, err)
	}
}

// An issuer that answers 200 with the JSON of an error has withdrawn nothing; one
// that answers with a set of none has withdrawn all.
func TestWhatIsNoKeySetWithdrawsNothing(t *testing.T) {
	t.Parallel()
	var answer atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, *answer.Load()) }))
	t.Cleanup(server.Close)
	key := newPublisher(t).publish(t, "one")
	answer.Store(new(`{"keys":[` + published(t, "one", "sig", key) + `]}`))
	v := follower(t, &publisher{address: server.URL}, time.Nanosecond)
	unknown := signed(t, jwt.SigningMethodES256, "two", key) // has the keys read again
	for _, text := range []string{`{"error":"try later"}`, `{"keys":null}`, `{"keys":{}}`, `[]`, `null`, `{"keys":[]} {`, ``} {
		answer.Store(&text)
		_, err := v.Authenticate(t.Context(), unknown)
		require.ErrorIs(t, err, gateway.ErrKeysUnavailable, text)
		_, err = v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "one", key)) // another signature each time: none is remembered
		require.NoError(t, err, text)
	}
	answer.Store(new(`{"keys":[]}`))
	require.Eventually(t, func() bool { // somebody else may be looking
		_, err := v.Authenticate(t.Context(), unknown)
		return errors.Is(err, gateway.ErrTokenInvalid)
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool {
		_, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "one", key))
		return errors.Is(err, gateway.ErrTokenInvalid)
	}, time.Minute, time.Millisecond)
}

// The pause is between any two looks, whoever looks.
func TestAnIssuerHasItsPause(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.away.Store(true) // so that it is looked at in the background as well, after each pause
	key := newPublisher(t).publish(t, "one")
	const pause = 20 * time.Millisecond
	v := follower(t, p, pause)
	token := signed(t, jwt.SigningMethodES256, "one", key)
	require.Eventually(t, func() bool {
		_, err := v.Authenticate(t.Context(), token)
		return errors.Is(err, gateway.ErrKeysUnavailable) && p.looks.Load() > 20
	}, time.Minute, time.Millisecond/4)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.seen[1:] {
		require.GreaterOrEqual(t, p.seen[i+1].Sub(p.seen[i]), pause, "look %d", i+1)
	}
}

// answers stand in for an issuer.
type answers func() (*http.Response, error)

func (a answers) RoundTrip(*http.Request) (*http.Response, error) { return a() }

// A look for a token of an unknown key is under way when the keys are due, and fails
// after that: a key that is withdrawn must not be known for another quarter of an hour.
func TestALookThatFailsDoesNotStandForOneThatWasDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		k := &issuerKeys{address: "https://issuer.example/keys", pause: keysPause, timeout: keysTimeout, log: slog.New(slog.DiscardHandler)}
		k.client = &http.Client{Transport: answers(func() (*http.Response, error) {
			if looks++; looks == 2 {
				<-time.After(2 * time.Second)
				return nil, errors.New("it is away")
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"keys":[]}`))}, nil
		})}
		ctx, stop := context.WithCancel(t.Context())
		require.True(t, k.look(ctx))
		var looking sync.WaitGroup
		looking.Go(func() { k.follow(ctx) })
		<-time.After(keysRefresh - time.Second)
		require.True(t, k.look(ctx))
		require.True(t, k.failing.Load())
		<-time.After(3 * keysPause)
		require.False(t, k.failing.Load())
		stop()
		looking.Wait()
		require.Equal(t, 3, looks)
	})
}

func TestNoErrorNamesTheKeyOfAToken(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	key := p.publish(t, "one")
	for _, pause := range []time.Duration{never, time.Nanosecond} {
		v := follower(t, p, pause)
		for _, away := range []bool{false, true} {
			p.away.Store(away)
			_, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "marker", key))
			require.Error(t, err)
			require.NotContains(t, err.Error(), "marker")
		}
		p.away.Store(false)
	}
}
