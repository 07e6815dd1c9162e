package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/insight"
	"github.com/oncegate/oncegate/order"
)

func TestAdviceIsWhatTheGatewayHasSeen(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	for range 99 {
		r.insight.Decided(order.Answer{Kind: order.Replayed, Layer: order.LayerRedis, Age: 10 * time.Second}, nil, time.Millisecond)
	}
	r.insight.Decided(order.Answer{Kind: order.Replayed, Layer: order.LayerLedger, Age: 40 * time.Hour}, nil, time.Millisecond)
	secret, err := signingSecret(&cfg)
	require.NoError(t, err)
	token, err := mint(&cfg, secret, tokenRequest{user: "ann", scopes: []string{gateway.ScopeAdmin}, ttl: time.Hour})
	require.NoError(t, err)
	at := "http://" + r.AdminAddr() + "/"

	code, out, stderr := command(t, nil, "ttl", "advise", "--admin", at, "--token", token)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, out, "100 retries (answered by the process 0, Redis 99, the database 1)")
	require.Regexp(t, `(?m)^1m +99\.0 % +94\.\d % to 99\.\d+ % `, out)
	require.Regexp(t, `(?m)^1d .* in force$`, out)
	require.Equal(t, 1, strings.Count(out, "in force"))
	require.Regexp(t, `(?m)^7d +not known`, out, "the oldest retry was of 40 hours")
	require.Contains(t, out, "99.0 % of the retries are answered before the database from a TTL of 10.24s on.")

	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	code, out, stderr = command(t, nil, "ttl", "advise", "--admin", at, "--token-file", file, "--json", "--ttl", "6h,7d", "--target", "1")
	require.Equal(t, exitOK, code, stderr)
	var advice insight.TTL
	require.NoError(t, json.Unmarshal([]byte(out), &advice))
	require.Len(t, advice.Forecasts, 2)
	require.InDelta(t, .99, advice.Forecasts[0].Share, 1e-9)
	require.InDelta(t, 1, advice.Target, 0)

	code, out, _ = command(t, nil, "ttl", "advise", "--admin", at, "--ttl", "25h", "--target", "1")
	require.Equal(t, exitOK, code)
	require.Regexp(t, `(?m)^1d .*in force\n25h `, out)

	code, out, stderr = command(t, []string{"ONCEGATE_DATA_DIR=" + cfg.DataDir, "ONCEGATE_ADMIN__LISTEN=" + r.AdminAddr()}, "ttl", "advise")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, out, "100 retries")
}

func TestAdviceThatCannotBeGivenSaysWhy(t *testing.T) {
	t.Parallel()
	r := start(t, embedded(t.TempDir()))
	at := "http://" + r.AdminAddr()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--admin", "nowhere"}, exitUsage, "is no URL"},
		{[]string{"--admin", "http://127.0.0.1:1"}, exitFailed, "connection refused"},
		{[]string{"--admin", at, "--token", "nonsense"}, exitFailed, "401 Unauthorized: "},
		{[]string{"--admin", at, "--token-file", "/nonexistent"}, exitUsage, "--token-file"},
		{[]string{"--admin", at, "--ttl", "soon"}, exitUsage, "must be a duration"},
		{[]string{"--admin", at, "--ttl", "9999999h"}, exitUsage, `--ttl: "9999999h" must be a duration such as 90s, 48h or 7d, at most 366d`},
		{[]string{"--admin", at, "--ttl", "1000d"}, exitFailed, "ttl[0] must be a duration"},
		{[]string{"--admin", at, "--target", "7"}, exitUsage, "must be a share"},
		{[]string{"--admin", at, "--target", "NaN"}, exitUsage, "must be a share"},
	} {
		code, out, stderr := command(t, nil, append([]string{"ttl", "advise"}, c.args...)...)
		require.Equal(t, c.code, code, c.args)
		require.Empty(t, out)
		require.Contains(t, stderr, c.says)
	}
	code, _, _ := command(t, nil, "ttl", "advise", "--token", "a", "--token-file", "b")
	require.Equal(t, exitUsage, code)
}

func TestAdviceBeforeTheFirstRetry(t *testing.T) {
	t.Parallel()
	r := start(t, embedded(t.TempDir()))
	code, out, stderr := command(t, nil, "ttl", "advise", "--admin", "http://"+r.AdminAddr())
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, out, "0 retries")
	require.Contains(t, out, "whose size in Redis is not measured yet")
	require.Contains(t, out, "No TTL that is known answers 99.0 %")
	require.NotContains(t, out, "NaN")
}

func TestAdviceSaysThatRedisIsAwayAndNamesNoTTLThatIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, embedded(t.TempDir()))
	for range 100 {
		r.insight.Decided(order.Answer{Kind: order.Replayed, Layer: order.LayerRedis, Age: time.Second}, nil, time.Millisecond)
	}
	at := "http://" + r.AdminAddr()
	var out string
	eventually(t, "a Redis that is there is away", func() bool { // on a busy machine it may seem so for a moment
		code, text, stderr := command(t, nil, "ttl", "advise", "--admin", at)
		require.Equal(t, exitOK, code, stderr)
		out = text
		return !strings.Contains(out, "Redis is away")
	})
	require.Contains(t, out, "from any TTL that the gateway accepts: longer than ttl.in_progress, 10s, such as 11s.")
	require.NotContains(t, out, "refused")
	_, out, _ = command(t, nil, "ttl", "advise", "--admin", at, "--ttl", "5s,10s,11s")
	require.Equal(t, 2, strings.Count(out, "refused: not longer than ttl.in_progress"))
	require.Regexp(t, `(?m)^11s .*[^d] *$`, out)

	r.insight.BreakerMoved("closed", "open", "timeout")
	code, out, stderr := command(t, nil, "ttl", "advise", "--admin", at)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, out, "Redis is away")
}
