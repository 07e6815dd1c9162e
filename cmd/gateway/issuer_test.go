package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
)

// publisher is an issuer's server: it publishes keys, counts the looks at them
// and can be away.
type publisher struct {
	address string
	looks   atomic.Int32
	away    atomic.Bool

	mu   sync.Mutex
	keys map[string]*ecdsa.PrivateKey
	more []string      // published before them
	held chan struct{} // not nil: answers wait for it
	seen []time.Time   // when somebody looked
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	p := &publisher{keys: map[string]*ecdsa.PrivateKey{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.looks.Add(1)
		p.mu.Lock()
		held := p.held
		p.seen = append(p.seen, time.Now())
		p.mu.Unlock()
		if held != nil {
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}
		if p.away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = fmt.Fprint(w, p.set(t))
	}))
	t.Cleanup(server.Close)
	p.address = server.URL
	return p
}

func (p *publisher) publish(t *testing.T, kid string) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[kid] = key
	return key
}

// alongside publishes these keys, too, in the place of those of the call before.
func (p *publisher) alongside(keys ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.more = keys
}

func (p *publisher) set(t *testing.T) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := slices.Clone(p.more)
	for kid, key := range p.keys {
		keys = append(keys, published(t, kid, "sig", key))
	}
	return `{"keys":[` + strings.Join(keys, ",") + `]}`
}

// published is one key of a set.
func published(t testing.TB, kid, use string, key *ecdsa.PrivateKey) string {
	t.Helper()
	point, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Error(err)
		return "null"
	}
	text := base64.RawURLEncoding.EncodeToString
	half := (len(point) - 1) / 2
	return fmt.Sprintf(`{"kty":"EC","crv":"P-256","kid":%q,"alg":"ES256","use":%q,"x":%q,"y":%q}`, kid, use, text(point[1:1+half]), text(point[1+half:]))
}

// follower is a verifier of what a publisher publishes, with a pause between
// looks. A look has far longer than the default: on a busy machine, a publisher that
// is there would be away.
func follower(t *testing.T, p *publisher, pause time.Duration) *gateway.TokenVerifier {
	t.Helper()
	a := &App{log: slog.New(slog.DiscardHandler), grace: time.Minute}
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	keys, err := a.followKeys(t.Context(), p.address, pause, time.Minute)
	require.NoError(t, err)
	v, err := gateway.NewTokenVerifier(gateway.TokenOptions{
		Keys: keys.find, Algorithms: []string{"ES256"}, Audience: "oncegate", Issuer: "oncegate", Now: time.Now,
	})
	require.NoError(t, err)
	return v
}

const never = time.Hour // longer than any test

func TestMadeUpKeyIDsCostTheIssuerNothing(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	key := p.publish(t, "one")
	v := follower(t, p, never)
	var flood sync.WaitGroup
	for i := range 8 {
		flood.Go(func() {
			for j := range 200 {
				_, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, fmt.Sprintf("made up %d %d", i, j), key))
				if err == nil {
					t.Error("believed")
				}
			}
		})
	}
	flood.Wait()
	require.EqualValues(t, 1, p.looks.Load(), "the first, at the start")
	_, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "one", key))
	require.NoError(t, err, "the honest are served meanwhile")
	_, err = v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "two", key))
	require.ErrorIs(t, err, gateway.ErrKeysUnavailable, "it may have been published since the look")
	require.EqualValues(t, 1, p.looks.Load())
}

func TestAKeyThatIsPublishedRightAfterALookIsNeverRefused(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.publish(t, "one")
	v := follower(t, p, 50*time.Millisecond)
	token := signed(t, jwt.SigningMethodES256, "two", p.publish(t, "two"))
	var err error
	require.Eventually(t, func() bool {
		_, err = v.Authenticate(t.Context(), token)
		return !errors.Is(err, gateway.ErrKeysUnavailable)
	}, time.Minute, time.Millisecond)
	require.NoError(t, err)
}

func TestAKeyThatALookDidNotFindIsNobodys(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	key := p.publish(t, "one")
	v := follower(t, p, time.Nanosecond)
	_, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "two", key))
	require.ErrorIs(t, err, gateway.ErrTokenInvalid)
}

// While one token waits for the issuer, the others do not.
func TestNobodyQueuesForAnIssuer(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	key := p.publish(t, "one")
	v := follower(t, p, time.Nanosecond)
	release := make(chan struct{})
	p.mu.Lock()
	p.held = release
	p.mu.Unlock()
	before := p.looks.Load()
	first := make(chan error, 1)
	two := signed(t, jwt.SigningMethodES256, "two", key)
	go func() {
		_, err := v.Authenticate(t.Context(), two)
		first <- err
	}()
	require.Eventually(t, func() bool { return p.looks.Load() == before+1 }, time.Minute, time.Millisecond)
	for range 100 {
		_, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "three", key))
		require.ErrorIs(t, err, gateway.ErrKeysUnavailable)
	}
	_, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "one", key))
	require.NoError(t, err)
	require.Equal(t, before+1, p.looks.Load())
	close(release)
	require.ErrorIs(t, <-first, gateway.ErrTokenInvalid)
}

func TestANewKeyOfTheIssuerIsBelievedAtOnce(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.publish(t, "one")
	v := follower(t, p, time.Nanosecond)
	_, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "two", p.publish(t, "two")))
	require.NoError(t, err)
}

func TestAnIssuerThatIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.away.Store(true)
	key := p.publish(t, "one")
	v := follower(t, p, time.Nanosecond)
	noID := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"sub": "alice", "aud": "oncegate", "iss": "oncegate", "scope": "orders", "exp": time.Now().Add(time.Hour).Unix(),
	})
	withoutID, err := noID.SignedString(key)
	require.NoError(t, err)
	for _, token := range []string{signed(t, jwt.SigningMethodES256, "one", key), withoutID} {
		_, err := v.Authenticate(t.Context(), token)
		require.ErrorIs(t, err, gateway.ErrKeysUnavailable)
		require.NotErrorIs(t, err, gateway.ErrTokenInvalid)
	}
	p.away.Store(false)
	for _, token := range []string{signed(t, jwt.SigningMethodES256, "one", key), withoutID} {
		require.Eventually(t, func() bool {
			_, err := v.Authenticate(t.Context(), token)
			return err == nil
		}, time.Minute, time.Millisecond)
	}
}

func TestKnownKeysStayInForceWhileTheIssuerIsAway(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	key := p.publish(t, "one")
	v := follower(t, p, time.Nanosecond)
	p.away.Store(true)
	_, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "two", key))
	require.ErrorIs(t, err, gateway.ErrKeysUnavailable, "it may have been published meanwhile")
	_, err = v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "one", key))
	require.NoError(t, err)
}

// Whoever can answer in the issuer's place, or has no end, is not listened to.
func TestAnswersOfAnIssuerAreBounded(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	for name, answer := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				elsewhere.Add(1)
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		},
		"an endless answer": func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = fmt.Fprint(w, `{"keys":[`, strings.Repeat(" ", 1<<16))
			}
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<html>") },
	} {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)
		v := follower(t, &publisher{address: server.URL}, never)
		key := newPublisher(t).publish(t, "one")
		_, err := v.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "one", key))
		require.ErrorIs(t, err, gateway.ErrKeysUnavailable, name)
	}
	require.Zero(t, elsewhere.Load(), "only the address that was configured is asked")
}
