package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/insight"
)

// adviceRequest is what "ttl advise" is asked for.
type adviceRequest struct {
	admin, token, tokenFile string
	ttls                    []string
	target                  float64
	asJSON                  bool
}

func ttlCommand(env environment) *cobra.Command {
	var r adviceRequest
	c := withConfig(&cobra.Command{
		Use:   "advise",
		Short: "Say what another ttl.receipt would do, from the retries that a gateway has seen",
		Long: `Ask a gateway how old the retries were that it has seen, and print what other
values of ttl.receipt would do: the share of retries answered before the
database, the retries left for the database, and the memory in Redis.

Without --admin it asks the gateway with this configuration, as "key inspect"
does. What it says is of that gateway alone: with several, rates and memory add
up.`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return r.check() },
		RunE:    func(c *cobra.Command, _ []string) error { return advise(c, env, &r) },
	}, false)
	f := c.Flags()
	f.StringVar(&r.admin, "admin", "", "URL of the admin listener, such as http://127.0.0.1:9090 (default: that of the configuration)")
	f.StringVar(&r.token, "token", "", "token with the scope admin.read; everybody on this machine can read it on the command line")
	f.StringVar(&r.tokenFile, "token-file", "", "file with the token")
	f.StringSliceVar(&r.ttls, "ttl", nil, "TTLs to forecast, such as 6h,48h,7d (default: from 15 seconds to a week)")
	f.Float64Var(&r.target, "target", 0.99, "share of retries that the recommended TTL is to answer before the database")
	f.BoolVar(&r.asJSON, "json", false, "print JSON instead of a table")
	c.MarkFlagsMutuallyExclusive("token", "token-file")
	return group("ttl", "Tune the time that Redis remembers an answer", c)
}

// check finds what is wrong with the command line, and reads the token.
func (r *adviceRequest) check() error {
	if !(r.target > 0 && r.target <= 1) {
		return fmt.Errorf("--target (%v) must be a share above 0 and at most 1", r.target)
	}
	for _, text := range r.ttls {
		if ttl, err := configs.ParseDuration(text); err != nil || ttl <= 0 {
			return fmt.Errorf("--ttl: %q must be a duration such as 90s, 48h or 7d, at most 366d", text)
		}
	}
	if r.admin != "" {
		u, err := url.Parse(r.admin)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("--admin: %q is no URL such as http://127.0.0.1:9090", r.admin)
		}
	}
	if r.tokenFile != "" {
		text, err := os.ReadFile(r.tokenFile)
		if err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
		r.token = strings.TrimSpace(string(text))
	}
	return nil
}

func advise(c *cobra.Command, env environment, r *adviceRequest) error {
	client, base, token, err := r.where(c, env)
	if err != nil {
		return err
	}
	q := url.Values{"target": {strconv.FormatFloat(r.target, 'g', -1, 64)}, "ttl": r.ttls}
	body, err := askAdmin(c.Context(), client, base+"/admin/v1/ttl?"+q.Encode(), token)
	if err != nil {
		return err
	}
	if r.asJSON {
		var indented bytes.Buffer
		if err := json.Indent(&indented, []byte(printable(string(body))), "", "  "); err != nil {
			return fmt.Errorf("the answer is no JSON: %w", err)
		}
		_, err := fmt.Fprintln(env.stdout, indented.String())
		return err
	}
	advice, err := adviceIn(body)
	if err != nil {
		return err
	}
	away, err := askRedisAway(c.Context(), client, base, token)
	if err != nil {
		return err
	}
	return printAdvice(env.stdout, advice, away)
}

// adviceIn reads a gateway's answer.
func adviceIn(body []byte) (*insight.TTL, error) {
	var advice insight.TTL
	if err := json.Unmarshal(body, &advice); err != nil {
		return nil, fmt.Errorf("the answer is none of this API: %w", err)
	}
	return &advice, nil
}

// askRedisAway tells whether the gateway goes without Redis at the moment.
func askRedisAway(ctx context.Context, client *http.Client, base, token string) (bool, error) {
	body, err := askAdmin(ctx, client, base+"/admin/v1/stats", token)
	if err != nil {
		return false, err
	}
	var stats insight.Stats
	if err := json.Unmarshal(body, &stats); err != nil {
		return false, fmt.Errorf("the answer is none of this API: %w", err)
	}
	return stats.Breaker.State != "closed" || stats.Redis == "failing", nil
}

// where says whom to ask, and with which token.
func (r *adviceRequest) where(c *cobra.Command, env environment) (client *http.Client, base, token string, err error) {
	token = r.token
	if r.admin != "" {
		return &http.Client{Transport: directTransport()}, strings.TrimSuffix(r.admin, "/"), token, nil
	}
	loaded, err := loadConfig(c, env)
	if err != nil {
		return nil, "", "", err
	}
	cfg := &loaded.Config
	if token == "" {
		if token, err = operatorToken(cfg); err != nil {
			return nil, "", "", err
		}
	}
	client, base, err = adminOf(cfg)
	return client, base, token, err
}
