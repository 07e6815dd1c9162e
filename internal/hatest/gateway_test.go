//go:build linux && ha

package hatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const tokenSecret = "a secret of thirty-two bytes or more"

// gateway is one running gateway.
type gateway struct {
	*process
	addr, admin string
}

// settings are those of a gateway whose limits are short, so that what it does
// in a failover is seen soon. More, by environment variable without its prefix,
// wins.
func settings(dsn string, more map[string]string) map[string]string {
	s := map[string]string{
		"MYSQL__DSN":               dsn,
		"MYSQL__CONNECT_TIMEOUT":   "1s",
		"MYSQL__READ_TIMEOUT":      "2s",
		"MYSQL__WAIT_TIMEOUT":      "12s",
		"REDIS__OP_TIMEOUT":        "100ms",
		"BREAKER__OPEN_FOR":        "500ms",
		"CACHE__MAC_KEY":           "a key of sixteen bytes or more",
		"AUTH__HS256_SECRET":       tokenSecret,
		"IN_PROGRESS_GRACE":        "1s",
		"REQUEST_BUDGET":           "4s",
		"MAX_WAIT":                 "5s",
		"TTL__IN_PROGRESS":         "6s",
		"HTTP__READ_TIMEOUT":       "4s",
		"HTTP__WRITE_TIMEOUT":      "11s",
		"SHUTDOWN_GRACE":           "15s",
		"USERS__PROVISION_BALANCE": "1000000.00",
		"LOG__LEVEL":               "warn",
	}
	maps.Copy(s, more)
	return s
}

func environment(settings map[string]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ONCEGATE_") })
	for name, value := range settings {
		env = append(env, "ONCEGATE_"+name+"="+value)
	}
	return env
}

// startGateway migrates the database, starts a gateway, and waits until it
// takes orders.
func startGateway(t *testing.T, s map[string]string) *gateway {
	t.Helper()
	return startGateways(t, 1, s)[0]
}

// startGateways starts several gateways of one deployment.
func startGateways(t *testing.T, count int, s map[string]string) (gateways []*gateway) {
	t.Helper()
	s["DATA_DIR"] = t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	migrate := exec.CommandContext(ctx, program(t), "migrate", "up")
	migrate.Env = environment(s)
	out, err := migrate.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for range count {
		g := &gateway{addr: reserve(t).Addr(), admin: reserve(t).Addr()}
		s["HTTP__LISTEN"], s["ADMIN__LISTEN"], s["DATA_DIR"] = g.addr, g.admin, t.TempDir()
		serve := exec.Command(program(t), "serve")
		serve.Env = environment(s)
		g.process = run(t, serve)
		gateways = append(gateways, g)
	}
	for _, g := range gateways {
		await(t, "the gateway is ready", func(ctx context.Context) error {
			status, _, err := get(ctx, "http://"+g.addr+"/readyz")
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("status %d", status)
			}
			return err
		})
	}
	return gateways
}

// audited has the program prove that the database is consistent.
func audited(t *testing.T, dsn string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	audit := exec.CommandContext(ctx, program(t), "audit")
	audit.Env = environment(settings(dsn, map[string]string{"DATA_DIR": t.TempDir()}))
	out, err := audit.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// metric sums the series of the gateway whose lines begin so.
func (g *gateway) metric(ctx context.Context, begin string) (sum float64, err error) {
	_, page, err := get(ctx, "http://"+g.admin+"/metrics")
	if err != nil {
		return 0, err
	}
	found := false
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, begin) {
			continue
		}
		found = true
		value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", line, err)
		}
		sum += value
	}
	if !found {
		return 0, errors.New("no series begins with " + begin)
	}
	return sum, nil
}

// get fetches a page on a connection of its own.
func get(ctx context.Context, url string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}
