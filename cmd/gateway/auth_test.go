package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
)

func signed(t testing.TB, method jwt.SigningMethod, kid string, key any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, jwt.MapClaims{
		"sub": "alice", "aud": "oncegate", "iss": "oncegate", "scope": "orders", "exp": time.Now().Add(time.Hour).Unix(),
	})
	token.Header["kid"] = kid
	text, err := token.SignedString(key)
	require.NoError(t, err)
	return text
}

func TestTokensOfAnIssuerAreBelievedByItsPublishedKeysOnly(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	key := p.publish(t, "one")
	cfg := configs.Default()
	cfg.Auth.JWKSURL = p.address
	a := &App{log: slog.New(slog.DiscardHandler), grace: time.Minute}
	defer func() { require.NoError(t, a.Close()) }()
	verifier, err := a.openAuth(t.Context(), &cfg)
	require.NoError(t, err)

	who, err := verifier.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, "one", key))
	require.NoError(t, err)
	require.Equal(t, "alice", who.UserID)

	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	public, err := key.PublicKey.Bytes()
	require.NoError(t, err)
	for name, token := range map[string]string{
		"another key under the same id": signed(t, jwt.SigningMethodES256, "one", other),
		"the public key as a secret":    signed(t, jwt.SigningMethodHS256, "one", public),
		"no signature":                  signed(t, jwt.SigningMethodNone, "one", jwt.UnsafeAllowNoneSignatureType),
	} {
		_, err := verifier.Authenticate(t.Context(), token)
		require.ErrorIs(t, err, gateway.ErrTokenInvalid, name)
	}
	for _, kid := range []string{"two", "three"} {
		_, err := verifier.Authenticate(t.Context(), signed(t, jwt.SigningMethodES256, kid, key))
		require.ErrorIs(t, err, gateway.ErrKeysUnavailable, "the keys have just been read, and may not be again")
	}
	require.EqualValues(t, 1, p.looks.Load(), "unknown key ids must not wait for another look")
}

func TestTheSecretBeforeIsStillBelieved(t *testing.T) {
	t.Parallel()
	old, fresh := []byte("old-0123456789abcdef0123456789abcdef"), "new-0123456789abcdef0123456789abcdef"
	cfg := configs.Default()
	cfg.Auth.HS256Secret, cfg.Auth.HS256PreviousSecret = configs.NewSecret(fresh), configs.NewSecret(string(old))
	a := &App{log: slog.New(slog.DiscardHandler), grace: time.Minute}
	verifier, err := a.openAuth(t.Context(), &cfg)
	require.NoError(t, err)
	for _, secret := range [][]byte{old, []byte(fresh)} {
		_, err := verifier.Authenticate(t.Context(), signed(t, jwt.SigningMethodHS256, "", secret))
		require.NoError(t, err)
	}
}
