package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

func TestTokensCarryWhatTheDeploymentAsksFor(t *testing.T) {
	t.Parallel()
	i := &Issuer{Audience: "oncegate", Issuer: "tests", Scope: "orders", Lifetime: time.Hour}
	require.Error(t, i.UseSecret(nil))
	require.NoError(t, i.UseSecret([]byte("0123456789abcdef0123456789abcdef")))
	users, err := i.Make("r1", 3, time.Now())
	require.NoError(t, err)
	require.Equal(t, "lt-r1-2", users[2].User)
	parsed, err := jwt.Parse(users[2].Token, func(*jwt.Token) (any, error) { return i.key, nil },
		jwt.WithAudience("oncegate"), jwt.WithIssuer("tests"), jwt.WithExpirationRequired(), jwt.WithValidMethods([]string{"HS256"}))
	require.NoError(t, err)
	sub, err := parsed.Claims.GetSubject()
	require.NoError(t, err)
	require.Equal(t, "lt-r1-2", sub)
}

func TestKeyFilesSignByTheirKind(t *testing.T) {
	t.Parallel()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	for alg, key := range map[string]any{"EdDSA": ed, "ES256": ec, "RS256": rs} {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		i := &Issuer{KeyID: "k1", Lifetime: time.Hour}
		require.NoError(t, i.UsePEM(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
		token, err := i.Token("u", "orders", time.Now())
		require.NoError(t, err)
		parsed, _, err := jwt.NewParser().ParseUnverified(token, jwt.MapClaims{})
		require.NoError(t, err)
		require.Equal(t, alg, parsed.Header["alg"])
		require.Equal(t, "k1", parsed.Header["kid"])
	}
	require.Error(t, (&Issuer{}).UsePEM([]byte("x")))
}

func TestUsersAreReadFromAFile(t *testing.T) {
	t.Parallel()
	users, err := Read(strings.NewReader("# users\nalice tok1\n\nbob\ttok2\n"), nil, time.Now())
	require.NoError(t, err)
	require.Len(t, users, 2)
	require.Equal(t, "tok2", users[1].Token)
	for _, bad := range []string{"", "alice", "alice a b", "a t\na t"} {
		_, err := Read(strings.NewReader(bad), nil, time.Now())
		require.Error(t, err, bad)
	}
}
