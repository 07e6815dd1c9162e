package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"golang.org/x/time/rate"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
)

// openAuth makes the verifier of tokens: of the shared secret, or of an issuer
// whose published keys it follows in the background.
func (a *App) openAuth(ctx context.Context, cfg *configs.Config) (*gateway.TokenVerifier, error) {
	o := gateway.TokenOptions{
		Audience:  cfg.Auth.Audience,
		Issuer:    cfg.Auth.Issuer,
		Leeway:    cfg.Auth.Leeway,
		CacheSize: cfg.Auth.TokenCache,
		Now:       time.Now,
	}
	if cfg.Auth.JWKSURL != "" {
		keys, err := a.followKeys(ctx, cfg.Auth.JWKSURL)
		if err != nil {
			return nil, fmt.Errorf("auth.jwks_url: %w", err)
		}
		o.Keys = keys.Keyfunc
		o.Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
		return gateway.NewTokenVerifier(o)
	}
	secret, err := signingSecret(cfg)
	if err != nil {
		return nil, err
	}
	secrets := [][]byte{secret}
	if previous := cfg.Auth.HS256PreviousSecret; previous.IsSet() {
		secrets = append(secrets, []byte(previous.Reveal()))
	}
	o.Algorithms = []string{"HS256"}
	if o.Keys, err = gateway.HS256Keys(secrets...); err != nil {
		return nil, err
	}
	return gateway.NewTokenVerifier(o)
}

// How an issuer's keys are followed.
const (
	keysRefresh = 15 * time.Minute // how long a withdrawn key is still believed
	keysTimeout = 3 * time.Second  // for one look
	keysPause   = 10 * time.Second // between looks for keys that are not known
)

// followKeys reads the issuer's keys until the App closes. An issuer that is
// away at the start is asked again when the first token comes.
func (a *App) followKeys(ctx context.Context, address string) (keyfunc.Keyfunc, error) {
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.keep("issuer's keys", func(context.Context) error { stop(); return nil })
	return keyfunc.NewDefaultOverrideCtx(following, []string{address}, keyfunc.Override{
		HTTPTimeout:       keysTimeout,
		RefreshInterval:   keysRefresh,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(keysPause), 1),
		// Tokens with made-up key ids must not queue up for the next look.
		RateLimitWaitMax: time.Nanosecond,
		RefreshErrorHandlerFunc: func(string) func(context.Context, error) {
			return func(ctx context.Context, err error) {
				a.log.WarnContext(ctx, "the issuer's keys cannot be read; those known stay in force", "error", err)
			}
		},
	})
}

// receiptKey is the key of the receipts' MAC. One that nobody configured lives
// as long as the Redis in this process, which is the only one it is for.
func receiptKey(cfg *configs.Config) []byte {
	if cfg.Cache.MACKey.IsSet() {
		return []byte(cfg.Cache.MACKey.Reveal())
	}
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails (crypto/rand, Go 1.24)
	return key
}

// logHashKey derives the key of the hashes that stand for idempotency keys in
// the logs, so that gateways that share receipts write the same hash.
func logHashKey(macKey []byte) []byte {
	h := hmac.New(sha256.New, macKey)
	h.Write([]byte("log"))
	return h.Sum(nil)
}
