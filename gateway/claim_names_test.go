package gateway_test

import (
	"maps"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
)

func TestNamesOfClaimsAreExact(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdef0123456789abcdef")
	keys, err := gateway.HS256Keys(secret)
	require.NoError(t, err)
	v, err := gateway.NewTokenVerifier(gateway.TokenOptions{
		Keys: keys, Algorithms: []string{"HS256"}, Audience: "oncegate", Issuer: "oncegate", Now: time.Now,
	})
	require.NoError(t, err)
	sign := func(more jwt.MapClaims) string {
		c := jwt.MapClaims{"sub": "alice", "aud": "oncegate", "iss": "oncegate", "scope": "orders", "exp": time.Now().Add(time.Hour).Unix()}
		maps.Copy(c, more)
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(secret)
		require.NoError(t, err)
		return token
	}
	// MapClaims are written in the order of their names: small letters, then "ſ",
	// come last and would win.
	for _, name := range []string{"ſub", "suB", "Sub", "ſcope", "scopE", "ſcp", "sCp"} {
		who, err := v.Authenticate(t.Context(), sign(jwt.MapClaims{name: "mallory"}))
		require.NoError(t, err, name)
		require.Equal(t, gateway.Identity{UserID: "alice", Scopes: []string{"orders"}}, who, name)
	}
	for name, more := range map[string]jwt.MapClaims{
		"audience": {"aud": "other", "aUd": "oncegate"}, "issuer": {"iss": "other", "iſs": "oncegate"}, "expiry": {"exp": 1, "eXp": time.Now().Add(time.Hour).Unix()},
	} {
		_, err := v.Authenticate(t.Context(), sign(more))
		require.ErrorIs(t, err, gateway.ErrTokenInvalid, name)
	}
}
