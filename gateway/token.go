package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/oncegate/oncegate/order"
)

// MinSecretLen is the shortest HS256 secret, in bytes (RFC 7518, section 3.2).
const MinSecretLen = 32

// TokenOptions say which tokens are believed. All are required but those that
// name a default.
type TokenOptions struct {
	// Keys finds the key of a token: [HS256Keys], or the Keyfunc of a
	// github.com/MicahParks/keyfunc/v3 that the caller owns.
	Keys jwt.Keyfunc
	// Algorithms are the signature algorithms that are accepted, such as
	// "HS256", or "RS256" and "ES256". Never both kinds: a public key must not
	// be taken for a secret.
	Algorithms []string
	Audience   string
	Issuer     string
	Now        func() time.Time
	// Leeway is the difference of clocks that is tolerated. Default 0.
	Leeway time.Duration
	// MaxLen bounds a token before it is looked at, in bytes. Default 4096.
	MaxLen int
	// CacheSize bounds the verified tokens that are remembered. Default 10 000.
	CacheSize int
}

// believedFor bounds how long a token is believed without another look at its
// key, so that a key which was withdrawn is soon of no use.
const believedFor = 5 * time.Minute

// TokenVerifier verifies bearer JWTs (RFC 7519). It remembers verified tokens
// for a few minutes, for checking a signature and reading claims costs more
// than a replay, and never past their expiry. Safe for concurrent use.
type TokenVerifier struct {
	o      TokenOptions
	parser *jwt.Parser
	seen   *lru.Cache[string, verified]
}

var _ Authenticator = (*TokenVerifier)(nil)

type verified struct {
	who    Identity
	until  time.Time // of another look, however the wall clock is moved
	expiry time.Time // by the wall clock
}

// NewTokenVerifier makes a verifier.
func NewTokenVerifier(o TokenOptions) (*TokenVerifier, error) {
	switch {
	case o.Keys == nil, o.Now == nil:
		return nil, errors.New("token verifier: an option is missing")
	case o.Audience == "", o.Issuer == "":
		return nil, errors.New("token verifier: audience and issuer are required")
	case len(o.Algorithms) == 0:
		return nil, errors.New("token verifier: at least one algorithm is required")
	}
	symmetric := 0
	for _, a := range o.Algorithms {
		if jwt.GetSigningMethod(a) == nil || a == jwt.SigningMethodNone.Alg() {
			return nil, fmt.Errorf("token verifier: unknown algorithm %q", a)
		}
		if strings.HasPrefix(a, "HS") {
			symmetric++
		}
	}
	if symmetric != 0 && symmetric != len(o.Algorithms) {
		return nil, errors.New("token verifier: shared secrets and public keys cannot be mixed")
	}
	if o.MaxLen == 0 {
		o.MaxLen = 4096
	}
	if o.CacheSize == 0 {
		o.CacheSize = 10_000
	}
	seen, err := lru.New[string, verified](o.CacheSize)
	if err != nil {
		return nil, fmt.Errorf("token verifier: %w", err)
	}
	parser := jwt.NewParser(
		jwt.WithValidMethods(o.Algorithms),
		jwt.WithAudience(o.Audience),
		jwt.WithIssuer(o.Issuer),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(o.Leeway),
		jwt.WithTimeFunc(o.Now),
		jwt.WithStrictDecoding(),
	)
	return &TokenVerifier{o: o, parser: parser, seen: seen}, nil
}

// HS256Keys accepts tokens that were signed with any of the secrets, so that a
// secret can be replaced without a gap.
func HS256Keys(secrets ...[]byte) (jwt.Keyfunc, error) {
	if len(secrets) == 0 {
		return nil, errors.New("no HS256 secret")
	}
	set := jwt.VerificationKeySet{}
	for _, s := range secrets {
		if len(s) < MinSecretLen {
			return nil, fmt.Errorf("an HS256 secret must have at least %d bytes", MinSecretLen)
		}
		set.Keys = append(set.Keys, s)
	}
	return func(*jwt.Token) (any, error) { return set, nil }, nil
}

// claims are the members of a token that matter here.
type claims struct {
	jwt.RegisteredClaims
	Scope scopes `json:"scope,omitempty"`
	SCP   scopes `json:"scp,omitempty"`
}

// UnmarshalJSON implements [json.Unmarshaler]. Names of claims are exact (RFC 7519,
// section 10.1.1). By itself encoding/json takes a claim of another name, such as
// "Sub", for the one it resembles: whoever may choose a name in somebody's token
// would choose its user.
func (c *claims) UnmarshalJSON(b []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	ours := []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "scope", "scp"}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return !slices.Contains(ours, name) })
	known, err := json.Marshal(all)
	if err != nil {
		return err
	}
	type members claims // without this method
	return json.Unmarshal(known, (*members)(c))
}

// scopes reads what issuers write: one string with blanks (RFC 8693) or an array.
type scopes []string

// UnmarshalJSON implements [json.Unmarshaler].
func (s *scopes) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(s))
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	*s = strings.Fields(text)
	return nil
}

// Authenticate verifies a token. A refusal wraps [ErrTokenInvalid]; a token that
// cannot be judged now gives [ErrKeysUnavailable].
func (v *TokenVerifier) Authenticate(_ context.Context, token string) (Identity, error) {
	if token == "" || len(token) > v.o.MaxLen {
		return Identity{}, fmt.Errorf("%w: its length is out of bounds", ErrTokenInvalid)
	}
	if known, ok := v.seen.Get(token); ok {
		if now := v.o.Now(); now.Before(known.until) && now.Before(known.expiry) {
			return known.who, nil
		}
		v.seen.Remove(token)
	}
	var c claims
	parsed, err := v.parser.ParseWithClaims(token, &c, v.o.Keys)
	switch {
	case errors.Is(err, ErrKeysUnavailable):
		return Identity{}, err
	case errors.Is(err, jwt.ErrTokenMalformed):
		// Whoever could not decode it quotes it, and no log holds a part of a token.
		return Identity{}, fmt.Errorf("%w: %w", ErrTokenInvalid, jwt.ErrTokenMalformed)
	case err != nil:
		return Identity{}, fmt.Errorf("%w: %w", ErrTokenInvalid, err)
	}
	if _, ok := parsed.Header["crit"]; ok {
		return Identity{}, fmt.Errorf("%w: it has critical extensions", ErrTokenInvalid)
	}
	if !ValidSubject(c.Subject) {
		return Identity{}, fmt.Errorf("%w: its subject cannot be a user", ErrTokenInvalid)
	}
	known := verified{
		who:    Identity{UserID: c.Subject, Scopes: append(c.Scope, c.SCP...)},
		until:  v.o.Now().Add(believedFor),
		expiry: c.ExpiresAt.Add(v.o.Leeway),
	}
	v.seen.Add(strings.Clone(token), known)
	return known.who, nil
}

// ValidSubject reports whether the subject of a token can be a user. What broken
// issuers write for nobody cannot: all their callers would be one user.
func ValidSubject(sub string) bool {
	return order.ValidUserID(sub) && sub != "null" && sub != "undefined"
}

// TokenSpec says what a minted token claims.
type TokenSpec struct {
	UserID   string
	Scopes   []string
	Audience string
	Issuer   string
	IssuedAt time.Time
	TTL      time.Duration
}

// MintToken signs a token with an HS256 secret, for trying and for tests.
func MintToken(secret []byte, spec TokenSpec) (string, error) {
	if len(secret) < MinSecretLen {
		return "", fmt.Errorf("an HS256 secret must have at least %d bytes", MinSecretLen)
	}
	if !ValidSubject(spec.UserID) {
		return "", errors.New("the user must have 1 to 64 visible ASCII characters, and not be null or undefined")
	}
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub":   spec.UserID,
		"scope": strings.Join(spec.Scopes, " "),
		"aud":   spec.Audience,
		"iss":   spec.Issuer,
		"iat":   jwt.NewNumericDate(spec.IssuedAt),
		"exp":   jwt.NewNumericDate(spec.IssuedAt.Add(spec.TTL)),
	})
	signed, err := token.SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("sign the token: %w", err)
	}
	return signed, nil
}
