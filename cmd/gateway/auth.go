package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

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
		keys, err := a.followKeys(ctx, cfg.Auth.JWKSURL, keysPause, keysTimeout)
		if err != nil {
			return nil, fmt.Errorf("auth.jwks_url: %w", err)
		}
		o.Keys = keys.find
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
