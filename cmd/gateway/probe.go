package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
)

// Bounds of what these commands ask a gateway.
const (
	probeTimeout = 5 * time.Second
	maxProbeBody = 1 << 20
)

func keyCommand(env environment) *cobra.Command {
	inspect := withConfig(&cobra.Command{
		Use:   "inspect USER KEY",
		Short: "Print what each layer knows of a key, as JSON",
		Long: `Ask the admin listener of the gateway with this configuration what each layer
knows of a key, and print it as JSON. Attempts are counted nowhere: key_hash is
what stands for the key in the log, which has a line for each. Beyond admin.allow_loopback it needs
auth.hs256_secret, to sign a token with the scope admin.read.`,
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
			path := "/admin/v1/keys/" + segment(args[0]) + "/" + segment(args[1])
			body, err := probe(c.Context(), &loaded.Config, path, token)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(env.stdout, printable(string(body)))
			return err
		},
	}, false)
	return group("key", "Look at one idempotency key", inspect)
}

// segment escapes a part of a path. One of dots alone would be a step in it.
func segment(text string) string {
	if text == "." || text == ".." {
		return strings.ReplaceAll(text, ".", "%2E")
	}
	return url.PathEscape(text)
}

// operatorToken signs a token that may look at the admin listener where the
// configuration has a secret; without one, being on the same machine must do.
func operatorToken(c *configs.Config) (string, error) {
	if !c.Auth.HS256Secret.IsSet() {
		return "", nil
	}
	secret := []byte(c.Auth.HS256Secret.Reveal())
	return mint(c, secret, tokenRequest{user: "operator", scopes: []string{gateway.ScopeAdminRead}, ttl: time.Minute})
}

// reachable turns what a setting says to listen on into an address to connect to.
func reachable(setting, listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("%s: %w", setting, err)
	}
	if port == "0" {
		return "", fmt.Errorf("%[1]s (%[2]s) takes a port that only the running gateway knows: its log says which; name it with --%[1]s=%[3]s",
			setting, listen, net.JoinHostPort(host, "PORT"))
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// probe returns what a path of the admin listener answers. It fails unless that is
// a success and the listener shows the certificate of the configuration.
func probe(ctx context.Context, cfg *configs.Config, path, token string) ([]byte, error) {
	client, base, err := adminOf(cfg)
	if err != nil {
		return nil, err
	}
	return askAdmin(ctx, client, base+path, token)
}

// adminOf is where the admin listener of a configuration is, and who can ask it.
func adminOf(cfg *configs.Config) (client *http.Client, base string, err error) {
	address, err := reachable("admin.listen", cfg.Admin.Listen)
	if err != nil {
		return nil, "", err
	}
	client, err = localClient(cfg)
	return client, scheme(cfg) + "://" + address, err
}

// probeHealth asks an address for what anybody may ask, whatever the certificate,
// and prints what it answers, whatever that is.
func probeHealth(ctx context.Context, w io.Writer, cfg *configs.Config, address, path string) error {
	status, body, err := ask(ctx, healthClient(), scheme(cfg)+"://"+address+path, "")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w, printable(string(body))); err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("the answer was %d %s", status, http.StatusText(status))
	}
	return nil
}

// askAdmin returns what an admin listener answers, if that is a success.
func askAdmin(ctx context.Context, client *http.Client, address, token string) ([]byte, error) {
	status, body, err := ask(ctx, client, address, token)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("the gateway answered %d %s%s", status, http.StatusText(status), explanation(body))
	}
	return body, nil
}

func ask(ctx context.Context, client *http.Client, address, token string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxProbeBody))
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer of %s: %w", address, err)
	}
	return resp.StatusCode, body, nil
}

// explanation is what a problem document says for people.
func explanation(body []byte) string {
	var p struct {
		Detail string
		Errors []struct{ Path, Reason string }
	}
	if json.Unmarshal(body, &p) != nil || p.Detail == "" {
		return ""
	}
	lines := []string{": " + printable(p.Detail)}
	for _, e := range p.Errors {
		lines = append(lines, "  - "+printable(e.Path+" "+e.Reason))
	}
	return strings.Join(lines, "\n")
}

// printable is a text of somebody else's as one line for a terminal, which takes
// control characters for commands.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\r', r == '\t':
			return ' '
		case gateway.IsControl(r):
			return utf8.RuneError
		default:
			return r
		}
	}, text)
}
