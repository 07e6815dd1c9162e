package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
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
	r := tokenRequest{ttl: 24 * time.Hour}
	c := withConfig(&cobra.Command{
		Use:   "token --user USER",
		Short: "Print a token that the gateway with this configuration believes",
		Long: `Print a token that the gateway with this configuration believes: one that is
signed with auth.hs256_secret or, without it, with the secret under data_dir.

The scopes: orders places and reads the user's orders; admin.read looks at the
admin listener and its console, admin.write looks and changes, and admin is both
of these.`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return r.check() },
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := loadConfig(c, env)
			if err != nil {
				return err
			}
			cfg := &loaded.Config
			_, missing := os.Stat(secretFile(cfg))
			secret, err := signingSecret(cfg)
			if err != nil {
				return err
			}
			if _, err := os.Stat(secretFile(cfg)); missing != nil && err == nil {
				fmt.Fprintf(env.stderr, "made a new signing secret, %s: only gateways with this data_dir believe the token\n", secretFile(cfg))
			}
			token, err := mint(cfg, secret, r)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(env.stdout, token)
			return err
		},
	}, false)
	c.Flags().StringVar(&r.user, "user", "", "whom it speaks for (required)")
	c.Flags().StringSliceVar(&r.scopes, "scope", []string{gateway.ScopeOrders}, "what it is good for, separated by commas: "+strings.Join(gateway.Scopes(), ", "))
	c.Flags().Var((*duration)(&r.ttl), "ttl", "how long it is valid")
	if err := c.MarkFlagRequired("user"); err != nil {
		panic(err) // the flag is three lines above
	}
	return c
}

// check refuses a request whose token would be of no use.
func (r *tokenRequest) check() error {
	if r.user == "" {
		return errors.New("--user must name whom the token speaks for")
	}
	if !gateway.ValidSubject(r.user) {
		return fmt.Errorf("--user (%q) must have 1 to 64 visible ASCII characters, and not be null or undefined", r.user)
	}
	if r.ttl <= 0 {
		return errors.New("--ttl: the token would have expired already")
	}
	if len(r.scopes) == 0 {
		return errors.New("--scope must name at least one of " + strings.Join(gateway.Scopes(), ", "))
	}
	for _, scope := range r.scopes {
		if !slices.Contains(gateway.Scopes(), scope) {
			return fmt.Errorf("--scope: %q is no scope: there are %s", scope, strings.Join(gateway.Scopes(), ", "))
		}
	}
	return nil
}

func mint(c *configs.Config, secret []byte, r tokenRequest) (string, error) {
	return gateway.MintToken(secret, gateway.TokenSpec{
		UserID:   r.user,
		Scopes:   r.scopes,
		Audience: c.Auth.Audience,
		Issuer:   c.Auth.Issuer,
		IssuedAt: time.Now(),
		TTL:      r.ttl,
	})
}
