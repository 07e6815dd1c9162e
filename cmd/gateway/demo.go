package main

import (
	"time"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/examples/storefront"
	"github.com/oncegate/oncegate/gateway"
)

// demoPage is the page at /demo, for a gateway that is being tried: with the
// embedded database, and tokens that this process may sign. Nil otherwise.
func demoPage(cfg *configs.Config) *gateway.Demo {
	if !cfg.EmbeddedDatabase() || cfg.Auth.JWKSURL != "" {
		return nil
	}
	return &gateway.Demo{
		Files: storefront.Files(),
		Token: func(userID string) (string, error) {
			secret, err := signingSecret(cfg)
			if err != nil {
				return "", err
			}
			return mint(cfg, secret, tokenRequest{user: userID, scopes: []string{gateway.ScopeOrders}, ttl: 24 * time.Hour})
		},
	}
}
