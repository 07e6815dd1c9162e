package gateway_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
)

// published is a verifier that believes one RSA key.
func published(t testing.TB) (*gateway.TokenVerifier, *rsa.PrivateKey) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	v, err := gateway.NewTokenVerifier(gateway.TokenOptions{
		Keys:       func(*jwt.Token) (any, error) { return &private.PublicKey, nil },
		Algorithms: []string{"RS256", "ES256", "EdDSA"}, Audience: audience, Issuer: issuer, Now: time.Now,
	})
	require.NoError(t, err)
	return v, private
}

// forged is a token with a header as it is written.
func forged(header, signature string) string {
	claims := fmt.Sprintf(`{"sub":"alice","aud":%q,"iss":%q,"scope":"orders","exp":%d}`, audience, issuer, time.Now().Add(time.Hour).Unix())
	text := base64.RawURLEncoding.EncodeToString
	return text([]byte(header)) + "." + text([]byte(claims)) + "." + signature
}

func TestAPublicKeyIsNoSecret(t *testing.T) {
	t.Parallel()
	v, private := published(t)
	good, err := v.Authenticate(context.Background(), signed(t, jwt.SigningMethodRS256, private, claimsFor(nil)))
	require.NoError(t, err)
	require.Equal(t, "alice", good.UserID)

	pkix, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	require.NoError(t, err)
	pkcs1 := x509.MarshalPKCS1PublicKey(&private.PublicKey)
	for name, secret := range map[string][]byte{
		"PKIX":      pkix,
		"PKIX PEM":  pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix}),
		"PKCS1":     pkcs1,
		"PKCS1 PEM": pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: pkcs1}),
		"modulus":   private.N.Bytes(),
		"empty":     {},
	} {
		for _, method := range []jwt.SigningMethod{jwt.SigningMethodHS256, jwt.SigningMethodHS384, jwt.SigningMethodHS512} {
			_, err := v.Authenticate(context.Background(), signed(t, method, secret, claimsFor(nil)))
			require.ErrorIs(t, err, gateway.ErrTokenInvalid, "%s %s", name, method.Alg())
		}
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, err = v.Authenticate(context.Background(), signed(t, jwt.SigningMethodES256, other, claimsFor(nil)))
	require.ErrorIs(t, err, gateway.ErrTokenInvalid, "an algorithm of another kind of key")
}

func TestForgedHeadersProveNothing(t *testing.T) {
	t.Parallel()
	var visits atomic.Int32
	attacker := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(attacker.Close)
	asymmetric, _ := published(t)
	verifiers := map[string]*gateway.TokenVerifier{"secret": verifier(t, time.Now), "published": asymmetric}
	for _, header := range []string{
		`{"alg":"none"}`, `{"alg":"None"}`, `{"alg":"nOnE"}`, `{"alg":"NONE","typ":"JWT"}`, `{"alg":""}`, `{}`, `null`, `[]`, `"none"`,
		`{"alg":["HS256"]}`, `{"alg":0}`, `{"alg":null}`, `{"alg":"HS256 "}`, `{"alg":"hs256"}`,
		`{"alg":"HS256","alg":"none"}`, `{"alg":"none","alg":"HS256"}`, `{"ALG":"HS256"}`,
		`{"alg":"HS256","kid":"../../dev/null"}`, `{"alg":"HS256","kid":"' OR 1=1 --"}`, `{"alg":"HS256","kid":7}`,
		`{"alg":"RS256","jku":"` + attacker.URL + `"}`, `{"alg":"RS256","x5u":"` + attacker.URL + `"}`,
		`{"alg":"RS256","jwk":{"kty":"oct","k":"AA"}}`, `{"alg":"HS256","b64":false,"crit":["b64"]}`,
		`{"alg":"dir","enc":"A256GCM"}`, strings.Repeat(`{"alg":`, 200),
	} {
		for _, signature := range []string{"", "AA", "bm90aGluZw", strings.Repeat("A", 43)} {
			for name, v := range verifiers {
				_, err := v.Authenticate(context.Background(), forged(header, signature))
				require.ErrorIs(t, err, gateway.ErrTokenInvalid, "%s %s %q", name, header, signature)
			}
		}
	}
	require.Zero(t, visits.Load(), "a token must not send the gateway anywhere")
}

func TestHugeTokensCostNothing(t *testing.T) {
	t.Parallel()
	looks := 0
	v, err := gateway.NewTokenVerifier(gateway.TokenOptions{
		Keys:       func(*jwt.Token) (any, error) { looks++; return []byte(secret), nil },
		Algorithms: []string{"HS256"}, Audience: audience, Issuer: issuer, Now: time.Now,
	})
	require.NoError(t, err)
	for name, token := range map[string]string{
		"claims":      signed(t, jwt.SigningMethodHS256, []byte(secret), claimsFor(set("x", strings.Repeat("x", 4096)))),
		"scopes":      signed(t, jwt.SigningMethodHS256, []byte(secret), claimsFor(set("scope", strings.Repeat("orders ", 1000)))),
		"audiences":   signed(t, jwt.SigningMethodHS256, []byte(secret), claimsFor(set("aud", strings.Split(strings.Repeat("oncegate,", 1000), ",")))),
		"dots":        strings.Repeat(".", 20<<10),
		"a signature": forged(`{"alg":"HS256"}`, strings.Repeat("A", 20<<10)),
	} {
		_, err := v.Authenticate(context.Background(), token)
		require.ErrorIs(t, err, gateway.ErrTokenInvalid, name)
	}
	require.Zero(t, looks, "they are refused before anything is looked up")
	for name, token := range map[string]string{
		"more dots":     strings.Repeat(".", 4000),
		"four parts":    mint("alice", "orders") + ".AA",
		"deep nesting":  signed(t, jwt.SigningMethodHS256, []byte("another secret of 32 bytes or more"), claimsFor(set("x", deep(200)))),
		"a blank":       " " + mint("alice", "orders"),
		"padding":       mint("alice", "orders") + "=",
		"not canonical": notCanonical(mint("alice", "orders")),
	} {
		_, err := v.Authenticate(context.Background(), token)
		require.ErrorIs(t, err, gateway.ErrTokenInvalid, name)
	}
}

func deep(n int) any {
	var v any = "x"
	for range n {
		v = []any{v}
	}
	return v
}

// notCanonical changes the two bits of a signature that say nothing: one token
// must not have several spellings.
func notCanonical(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, token[len(token)-1])
	return token[:len(token)-1] + string(alphabet[last^1])
}

func TestAnIssuerThatIsAwayIsNoFaultOfTheToken(t *testing.T) {
	t.Parallel()
	v, err := gateway.NewTokenVerifier(gateway.TokenOptions{
		Keys: func(*jwt.Token) (any, error) {
			return nil, fmt.Errorf("%w: no route to host", gateway.ErrKeysUnavailable)
		},
		Algorithms: []string{"HS256"}, Audience: audience, Issuer: issuer, Now: time.Now,
	})
	require.NoError(t, err)
	k := newKit(t, func(o *gateway.Options) { o.Auth = v })
	for _, r := range []reply{
		k.post(plain, key("k1")), k.batch(`{"orders":[`+plain+`]}`, key("k1")), k.get("/api/orders"), k.get("/api/requests/k1"),
	} {
		p := r.problem(t)
		require.Equal(t, http.StatusServiceUnavailable, r.status)
		require.Equal(t, "UNAVAILABLE", p.Code)
		require.Equal(t, "not_committed", p.Outcome)
		require.True(t, p.Retryable)
		require.Equal(t, "1", r.header.Get("Retry-After"))
		require.Empty(t, r.header.Get("WWW-Authenticate"))
		require.NotContains(t, r.body, "route to host")
	}
	require.Zero(t, k.ledger.Calls().Decide)
	require.Contains(t, k.logs.String(), "no route to host")
	d := newDesk(t, func(o *gateway.AdminOptions) { o.Auth = v })
	require.Equal(t, http.StatusServiceUnavailable, d.ask(elsewhere, http.MethodGet, "/metrics", "", as("ops", gateway.ScopeAdmin)).status)
}
