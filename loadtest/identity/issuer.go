package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/oncegate/oncegate/loadtest/drive"
)

// Issuer signs tokens as the deployment expects them.
type Issuer struct {
	Audience, Issuer string // left out when empty
	KeyID            string // the kid header; left out when empty
	Scope            string
	Lifetime         time.Duration

	method jwt.SigningMethod
	key    any
}

// UseSecret makes the issuer sign with HS256.
func (i *Issuer) UseSecret(secret []byte) error {
	if len(secret) == 0 {
		return errors.New("the token secret is empty")
	}
	i.method, i.key = jwt.SigningMethodHS256, secret
	return nil
}

// UsePEM makes the issuer sign with a private key in PKCS #8, by its own kind:
// RS256, ES256 or EdDSA.
func (i *Issuer) UsePEM(text []byte) error {
	block, _ := pem.Decode(text)
	if block == nil {
		return errors.New("the key file is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("the key file: %w", err)
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		i.method = jwt.SigningMethodRS256
	case *ecdsa.PrivateKey:
		if k.Curve.Params().BitSize != 256 {
			return errors.New("the key file: only the P-256 curve is supported")
		}
		i.method = jwt.SigningMethodES256
	case ed25519.PrivateKey:
		i.method = jwt.SigningMethodEdDSA
	default:
		return fmt.Errorf("the key file: keys of type %T are not supported", key)
	}
	i.key = key.(crypto.Signer)
	return nil
}

// Token signs a token for a user.
func (i *Issuer) Token(user, scope string, now time.Time) (string, error) {
	claims := jwt.MapClaims{
		"sub": user, "scope": scope,
		"iat": now.Unix(), "exp": now.Add(i.Lifetime).Unix(),
	}
	if i.Audience != "" {
		claims["aud"] = i.Audience
	}
	if i.Issuer != "" {
		claims["iss"] = i.Issuer
	}
	t := jwt.NewWithClaims(i.method, claims)
	if i.KeyID != "" {
		t.Header["kid"] = i.KeyID
	}
	signed, err := t.SignedString(i.key)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return signed, nil
}

// Make makes users of a run: lt-RUN-0, lt-RUN-1 and so on.
func (i *Issuer) Make(run string, n int, now time.Time) ([]drive.Identity, error) {
	users := make([]drive.Identity, n)
	for u := range users {
		name := fmt.Sprintf("lt-%s-%d", run, u)
		token, err := i.Token(name, i.Scope, now)
		if err != nil {
			return nil, err
		}
		users[u] = drive.Identity{User: name, Token: token}
	}
	return users, nil
}
