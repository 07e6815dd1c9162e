package gateway_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
)

func claimsFor(change func(jwt.MapClaims)) jwt.MapClaims {
	c := jwt.MapClaims{
		"sub": "alice", "aud": audience, "iss": issuer, "scope": "orders",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	if change != nil {
		change(c)
	}
	return c
}

func signed(t testing.TB, method jwt.SigningMethod, key any, c jwt.MapClaims) string {
	t.Helper()
	s, err := jwt.NewWithClaims(method, c).SignedString(key)
	require.NoError(t, err)
	return s
}

func set(name string, value any) func(jwt.MapClaims) {
	return func(c jwt.MapClaims) {
		if value == nil {
			delete(c, name)
			return
		}
		c[name] = value
	}
}

// What is wrong with a token is for the log, and no part of it is.
func TestARefusalQuotesNothingOfTheToken(t *testing.T) {
	t.Parallel()
	v := verifier(t, time.Now)
	text := base64.RawURLEncoding.EncodeToString
	for name, token := range map[string]string{
		"no segments":     "marker",
		"no header":       "marker.marker.marker",
		"header no JSON":  text([]byte("marker")) + ".e30.e30",
		"alg":             text([]byte(`{"alg":"marker"}`)) + ".e30.e30",
		"alg, a number":   text([]byte(`{"alg":1,"kid":"marker"}`)) + ".e30.e30",
		"claims no JSON":  text([]byte(`{"alg":"HS256"}`)) + "." + text([]byte("marker")) + ".e30",
		"exp, a text":     signed(t, jwt.SigningMethodHS256, []byte(secret), claimsFor(set("exp", "marker"))),
		"aud, an object":  signed(t, jwt.SigningMethodHS256, []byte(secret), claimsFor(set("aud", map[string]any{"marker": 1}))),
		"another aud":     signed(t, jwt.SigningMethodHS256, []byte(secret), claimsFor(set("aud", "marker"))),
		"another iss":     signed(t, jwt.SigningMethodHS256, []byte(secret), claimsFor(set("iss", "marker"))),
		"no user":         signed(t, jwt.SigningMethodHS256, []byte(secret), claimsFor(set("sub", "the marker"))),
		"another's token": signed(t, jwt.SigningMethodHS256, []byte("another secret, also 32 bytes long"), claimsFor(set("sub", "marker"))),
	} {
		_, err := v.Authenticate(t.Context(), token)
		require.ErrorIs(t, err, gateway.ErrTokenInvalid, name)
		require.NotContains(t, err.Error(), "marker", name)
	}
}

func TestTokensThatProveNothingAreRefused(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	hs := jwt.SigningMethodHS256
	critical := jwt.NewWithClaims(hs, claimsFor(nil))
	critical.Header["crit"] = []string{"b64"}
	withCrit, err := critical.SignedString([]byte(secret))
	require.NoError(t, err)
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, claimsFor(nil)).SignedString(jwt.UnsafeAllowNoneSignatureType)
	require.NoError(t, err)
	good := signed(t, hs, []byte(secret), claimsFor(nil))

	authorizations := map[string][]string{
		"none":          nil,
		"empty":         {""},
		"basic":         {"Basic YWxpY2U6eA=="},
		"scheme only":   {"Bearer"},
		"no token":      {"Bearer "},
		"garbage":       {"Bearer x.y.z"},
		"two headers":   {"Bearer " + good, "Bearer " + good},
		"wrong key":     {"Bearer " + signed(t, hs, []byte(strings.Repeat("x", 32)), claimsFor(nil))},
		"alg none":      {"Bearer " + none},
		"alg HS512":     {"Bearer " + signed(t, jwt.SigningMethodHS512, []byte(secret), claimsFor(nil))},
		"critical":      {"Bearer " + withCrit},
		"cut signature": {"Bearer " + good[:len(good)-4]},
		"too long":      {"Bearer " + signed(t, hs, []byte(secret), claimsFor(set("x", strings.Repeat("x", 5000))))},
	}
	for name, change := range map[string]func(jwt.MapClaims){
		"expired":          set("exp", time.Now().Add(-time.Second).Unix()),
		"without expiry":   set("exp", nil),
		"not yet":          set("nbf", time.Now().Add(time.Hour).Unix()),
		"wrong audience":   set("aud", "others"),
		"without audience": set("aud", nil),
		"wrong issuer":     set("iss", "others"),
		"without issuer":   set("iss", nil),
		"without subject":  set("sub", nil),
		"empty subject":    set("sub", ""),
		"subject null":     set("sub", "null"),
		"subject 0":        set("sub", 0),
		"subject blank":    set("sub", "al ice"),
		"subject long":     set("sub", strings.Repeat("a", 65)),
		"subject umlaut":   set("sub", "ålice"),
		"scope is number":  set("scope", 7),
	} {
		authorizations[name] = []string{"Bearer " + signed(t, hs, []byte(secret), claimsFor(change))}
	}
	for name, values := range authorizations {
		r := k.do(http.MethodPost, "/api/orders", plain, key("k"), func(h http.Header) { h["Authorization"] = values })
		require.Equal(t, http.StatusUnauthorized, r.status, name)
		p := r.problem(t)
		require.Equal(t, "UNAUTHENTICATED", p.Code, name)
		require.False(t, p.SafeNewKey, name)
		require.True(t, strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer "), name)
	}
	require.Equal(t, 0, k.ledger.Calls().Decide)
}

func TestScopes(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for name, c := range map[string]struct {
		change func(jwt.MapClaims)
		status int
	}{
		"several":   {set("scope", "a orders  admin"), http.StatusOK},
		"array":     {set("scope", []string{"orders"}), http.StatusOK},
		"scp":       {func(c jwt.MapClaims) { delete(c, "scope"); c["scp"] = []string{"orders"} }, http.StatusOK},
		"scp text":  {func(c jwt.MapClaims) { delete(c, "scope"); c["scp"] = "orders" }, http.StatusOK},
		"admin":     {set("scope", "admin"), http.StatusForbidden},
		"missing":   {set("scope", nil), http.StatusForbidden},
		"prefix":    {set("scope", "orders:read"), http.StatusForbidden},
		"wrong cap": {set("scope", "Orders"), http.StatusForbidden},
	} {
		bearer := "Bearer " + signed(t, jwt.SigningMethodHS256, []byte(secret), claimsFor(c.change))
		r := k.do(http.MethodGet, "/api/orders", "", with("Authorization", bearer))
		require.Equal(t, c.status, r.status, name)
		if r.status == http.StatusForbidden {
			require.Equal(t, "FORBIDDEN", r.problem(t).Code)
			require.Contains(t, r.header.Get("WWW-Authenticate"), `error="insufficient_scope", scope="orders"`)
		}
	}
}

func TestARememberedTokenStillExpires(t *testing.T) {
	t.Parallel()
	var shift atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
	looks := 0
	v, err := gateway.NewTokenVerifier(gateway.TokenOptions{
		Keys: func(*jwt.Token) (any, error) { looks++; return []byte(secret), nil }, Algorithms: []string{"HS256"},
		Audience: audience, Issuer: issuer, Now: now, Leeway: time.Second,
	})
	require.NoError(t, err)
	tok := signed(t, jwt.SigningMethodHS256, []byte(secret), claimsFor(nil))
	ask := func() error {
		_, err := v.Authenticate(context.Background(), tok)
		return err
	}
	require.NoError(t, ask())
	require.NoError(t, ask())
	require.Equal(t, 1, looks)
	shift.Store(int64(6 * time.Minute))
	require.NoError(t, ask())
	require.Equal(t, 2, looks, "a key that was withdrawn is soon of no use")
	shift.Store(int64(time.Hour + 2*time.Second))
	require.ErrorIs(t, ask(), gateway.ErrTokenInvalid)
}

func TestSecretsCanBeReplacedWithoutAGap(t *testing.T) {
	t.Parallel()
	other := []byte(strings.Repeat("n", 32))
	keys, err := gateway.HS256Keys(other, []byte(secret))
	require.NoError(t, err)
	v, err := gateway.NewTokenVerifier(gateway.TokenOptions{Keys: keys, Algorithms: []string{"HS256"}, Audience: audience, Issuer: issuer, Now: time.Now})
	require.NoError(t, err)
	for _, s := range [][]byte{other, []byte(secret)} {
		who, err := v.Authenticate(context.Background(), signed(t, jwt.SigningMethodHS256, s, claimsFor(nil)))
		require.NoError(t, err)
		require.Equal(t, gateway.Identity{UserID: "alice", Scopes: []string{"orders"}}, who)
	}
}

func TestKeySetsOfAnIssuer(t *testing.T) {
	t.Parallel()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	jwk, err := jwkset.NewJWKFromKey(private.Public(), jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: "one", ALG: jwkset.AlgRS256, USE: jwkset.UseSig}})
	require.NoError(t, err)
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{jwk.Marshal()}})
	}))
	t.Cleanup(idp.Close)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	kf, err := keyfunc.NewDefaultCtx(ctx, []string{idp.URL})
	require.NoError(t, err)
	v, err := gateway.NewTokenVerifier(gateway.TokenOptions{Keys: kf.Keyfunc, Algorithms: []string{"RS256"}, Audience: audience, Issuer: issuer, Now: time.Now})
	require.NoError(t, err)
	sign := func(kid string) string {
		tok := jwt.NewWithClaims(jwt.SigningMethodRS256, claimsFor(nil))
		tok.Header["kid"] = kid
		s, err := tok.SignedString(private)
		require.NoError(t, err)
		return s
	}
	_, err = v.Authenticate(ctx, sign("one"))
	require.NoError(t, err)
	_, err = v.Authenticate(ctx, sign("two"))
	require.ErrorIs(t, err, gateway.ErrTokenInvalid)
	// The public key must not be taken for a shared secret.
	confused := jwt.NewWithClaims(jwt.SigningMethodHS256, claimsFor(nil))
	confused.Header["kid"] = "one"
	s, err := confused.SignedString(private.N.Bytes())
	require.NoError(t, err)
	_, err = v.Authenticate(ctx, s)
	require.ErrorIs(t, err, gateway.ErrTokenInvalid)
}

func TestVerifiersThatWouldBelieveTooMuchAreNotMade(t *testing.T) {
	t.Parallel()
	keys, err := gateway.HS256Keys([]byte(secret))
	require.NoError(t, err)
	good := gateway.TokenOptions{Keys: keys, Algorithms: []string{"HS256"}, Audience: audience, Issuer: issuer, Now: time.Now}
	for name, change := range map[string]func(*gateway.TokenOptions){
		"no keys":      func(o *gateway.TokenOptions) { o.Keys = nil },
		"no audience":  func(o *gateway.TokenOptions) { o.Audience = "" },
		"no issuer":    func(o *gateway.TokenOptions) { o.Issuer = "" },
		"no algorithm": func(o *gateway.TokenOptions) { o.Algorithms = nil },
		"none":         func(o *gateway.TokenOptions) { o.Algorithms = []string{"none"} },
		"unknown":      func(o *gateway.TokenOptions) { o.Algorithms = []string{"XS1"} },
		"mixed":        func(o *gateway.TokenOptions) { o.Algorithms = []string{"HS256", "RS256"} },
	} {
		o := good
		change(&o)
		_, err := gateway.NewTokenVerifier(o)
		require.Error(t, err, name)
	}
	_, err = gateway.HS256Keys([]byte("short"))
	require.Error(t, err)
	_, err = gateway.HS256Keys()
	require.Error(t, err)
	_, err = gateway.MintToken([]byte("short"), gateway.TokenSpec{UserID: "alice"})
	require.Error(t, err)
	_, err = gateway.MintToken([]byte(secret), gateway.TokenSpec{UserID: ""})
	require.Error(t, err)
}
