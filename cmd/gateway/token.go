package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
)

// tokenRequest is what a token is asked to say.
type tokenRequest struct {
	user   string
	scopes []string
	ttl    time.Duration
}

func tokenCommand(env environment) *cobra.Command {
	var r tokenRequest
	c := withConfig(&cobra.Command{
		Use:   "token --user USER",
		Short: "Print a token that the gateway with this configuration believes",
		Long: `Print a token that the gateway with this configuration believes: one that is
signed with auth.hs256_secret or, without it, with the secret under data_dir.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := loadConfig(c, env)
			if err != nil {
				return err
			}
			secret, err := signingSecret(&loaded.Config)
			if err != nil {
				return err
			}
			token, err := mint(&loaded.Config, secret, r)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(env.stdout, token)
			return err
		},
	}, false)
	c.Flags().StringVar(&r.user, "user", "", "whom it speaks for (required)")
	c.Flags().StringSliceVar(&r.scopes, "scope", []string{gateway.ScopeOrders}, "orders, admin")
	c.Flags().DurationVar(&r.ttl, "ttl", 24*time.Hour, "how long it is valid")
	if err := c.MarkFlagRequired("user"); err != nil {
		panic(err) // the flag is three lines above
	}
	return c
}

func mint(c *configs.Config, secret []byte, r tokenRequest) (string, error) {
	if r.ttl <= 0 {
		return "", errors.New("the token would have expired already")
	}
	return gateway.MintToken(secret, gateway.TokenSpec{
		UserID:   r.user,
		Scopes:   r.scopes,
		Audience: c.Auth.Audience,
		Issuer:   c.Auth.Issuer,
		IssuedAt: time.Now(),
		TTL:      r.ttl,
	})
}
