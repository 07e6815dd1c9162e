package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
)

// Bounds of what these commands ask a gateway.
const (
	probeTimeout = 5 * time.Second
	maxProbeBody = 1 << 20
)

func healthcheckCommand(env environment) *cobra.Command {
	return withConfig(&cobra.Command{
		Use:   "healthcheck",
		Short: "Ask the gateway with this configuration whether it is ready; exit code 1 when it is not",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := loadConfig(c, env)
			if err != nil {
				return err
			}
			return probeHealth(c.Context(), env.stdout, &loaded.Config, loaded.Config.HTTP.Listen, "/readyz")
		},
	}, false)
}

func keyCommand(env environment) *cobra.Command {
	inspect := withConfig(&cobra.Command{
		Use:   "inspect USER KEY",
		Short: "Print what each layer knows of a key, as JSON",
		Long: `Ask the admin listener of the gateway with this configuration what each layer
knows of a key, and print it as JSON. Beyond admin.allow_loopback it needs
auth.hs256_secret, to sign a token with the scope admin.`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			loaded, err := loadConfig(c, env)
			if err != nil {
				return err
			}
			token, err := operatorToken(&loaded.Config)
			if err != nil {
				return err
			}
			path := "/admin/v1/keys/" + url.PathEscape(args[0]) + "/" + url.PathEscape(args[1])
			return probe(c.Context(), env.stdout, &loaded.Config, loaded.Config.Admin.Listen, path, token)
		},
	}, false)
	return group("key", "Look at one idempotency key", inspect)
}

// operatorToken signs a token for the admin listener where the configuration
// has a secret; without one, being on the same machine must do.
func operatorToken(c *configs.Config) (string, error) {
	if !c.Auth.HS256Secret.IsSet() {
		return "", nil
	}
	secret := []byte(c.Auth.HS256Secret.Reveal())
	return mint(c, secret, tokenRequest{user: "operator", scopes: []string{gateway.ScopeAdmin}, ttl: time.Minute})
}

// reachable turns an address to listen on into one to connect to.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// probe prints what a path of a listener answers, and fails unless that is a
// success and the listener shows the certificate of the configuration.
func probe(ctx context.Context, w io.Writer, cfg *configs.Config, listen, path, token string) error {
	client, err := localClient(cfg)
	if err != nil {
		return err
	}
	return ask(ctx, w, client, scheme(cfg)+"://"+reachable(listen)+path, token)
}

// probeHealth is probe for what anybody may ask, whatever the certificate.
func probeHealth(ctx context.Context, w io.Writer, cfg *configs.Config, listen, path string) error {
	return ask(ctx, w, healthClient(), scheme(cfg)+"://"+reachable(listen)+path, "")
}

func ask(ctx context.Context, w io.Writer, client *http.Client, address, token string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProbeBody))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", address, err)
	}
	if _, err := fmt.Fprintf(w, "%s\n", body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New("the gateway answered " + resp.Status)
	}
	return nil
}
