package configs

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOverridingLeavesTheOriginalAlone(t *testing.T) {
	t.Parallel()
	base, err := Load(Sources{})
	require.NoError(t, err)
	next, passed, err := base.Override(map[string]string{"ttl.receipt": "48h", "limits.rate": "2.5", "log.level": "debug", "cache.confirm_receipts": "true"})
	require.NoError(t, err)
	require.Empty(t, passed)
	require.Equal(t, 48*time.Hour, next.Config.TTL.Receipt)
	require.InDelta(t, 2.5, next.Config.Limits.Rate, 0)
	require.Equal(t, "debug", next.Config.Log.Level)
	require.True(t, next.Config.Cache.ConfirmReceipts)
	require.Equal(t, Default(), base.Config)
	require.Empty(t, base.Origins)
	s, ok := next.Setting("ttl.receipt")
	require.True(t, ok)
	require.Equal(t, Setting{
		Name: "ttl.receipt", Value: "2d", Default: "1d", Type: "duration", Origin: "api", Live: true,
		Description: "an answer: the window in which replays are cheap",
	}, s)
}

func TestAnOverrideThatBreaksTheOrderOfTimesIsRefusedWhole(t *testing.T) {
	t.Parallel()
	base, err := Load(Sources{})
	require.NoError(t, err)
	for _, c := range []struct{ name, value, fault string }{
		{"ttl.in_progress", "1h", "ttl.in_progress (1h) must be shorter than http.write_timeout (18s)"},
		{"ttl.in_progress", "5s", "request_budget (6s) must be shorter than ttl.in_progress (5s)"},
		{"request_budget", "2s", "mysql.read_timeout (3s) must be shorter than request_budget (2s)"},
		{"in_progress_grace", "11s", "in_progress_grace (11s) must be shorter than ttl.in_progress (10s)"},
		{"ttl.receipt", "9s", "ttl.in_progress (10s) must be shorter than ttl.receipt (9s)"},
		{"ttl.receipt", "0s", "ttl.receipt (0s) must be from 1s to 3650d"},
		{"max_wait", "15s", "max_wait + request_budget (21s) must be shorter than http.write_timeout (18s)"},
		{"ttl.receipt", "soon", "ttl.receipt must be a duration with a unit"},
		{"breaker.failures", "0", "breaker.failures (0) must be from 1 to 1000000"},
		{"limits.rate", "NaN", "limits.rate must be a number"},
		{"log.level", "loud", `log.level ("loud") must be one of`},
	} {
		_, _, err := base.Override(map[string]string{"limits.burst": "7", c.name: c.value})
		var invalid *InvalidError
		require.ErrorAs(t, err, &invalid, "%s %s", c.name, c.value)
		require.ErrorContains(t, err, c.fault)
	}
	require.Equal(t, Default(), base.Config)
}

func TestWhatTakesNoOrdersStaysSoUnderOverrides(t *testing.T) {
	t.Parallel()
	sources := Sources{Environ: []string{"ONCEGATE_MYSQL__DSN=" + someDSN, "ONCEGATE_REDIS__ADDRS=r:1"}}
	_, err := Load(sources)
	require.ErrorContains(t, err, "auth.hs256_secret or auth.jwks_url is required")
	require.ErrorContains(t, err, "cache.mac_key is required")
	sources.NoGateway = true
	base, err := Load(sources)
	require.NoError(t, err)
	next, _, err := base.Override(map[string]string{"retention.responses": "7d"})
	require.NoError(t, err)
	require.Equal(t, 7*day, next.Config.Retention.Responses)
	_, _, err = next.Override(map[string]string{"retention.responses": "1s"})
	require.ErrorContains(t, err, "retention.responses (1s) must be from 1d")
}

func TestOnlyAGatewayNeedsAnAdminListener(t *testing.T) {
	t.Parallel()
	sources := Sources{File: write(t, "admin: {listen: ''}\n")}
	_, err := Load(sources)
	require.ErrorContains(t, err, "admin.listen is required: only 'oncegate consume' does without")
	sources.NoGateway = true
	_, err = Load(sources)
	require.NoError(t, err)
}

func TestTheBoundOfReceiptsIsThatOfTheValidation(t *testing.T) {
	t.Parallel()
	for _, inProgress := range []string{"7s", "10s", "17999ms"} {
		base, err := Load(Sources{Environ: []string{"ONCEGATE_TTL__IN_PROGRESS=" + inProgress}})
		require.NoError(t, err)
		bound := base.Config.ReceiptBound()
		_, _, err = base.Override(map[string]string{"ttl.receipt": bound.String()})
		require.ErrorContains(t, err, "must be shorter than ttl.receipt")
		for _, longer := range []time.Duration{bound + time.Millisecond, bound.Truncate(time.Second) + time.Second} {
			_, _, err = base.Override(map[string]string{"ttl.receipt": longer.String()})
			require.NoError(t, err, longer)
		}
	}
}

func TestWhatIsGivenElsewhereIsPassedOver(t *testing.T) {
	t.Parallel()
	path := write(t, "ttl:\n  receipt: 2h\n")
	base, err := Load(Sources{File: path, Environ: []string{"ONCEGATE_LIMITS__RATE=3"}})
	require.NoError(t, err)
	next, passed, err := base.Override(map[string]string{
		"ttl.receipt": "48h", "limits.rate": "9", "http.listen": "0.0.0.0:1", "no.such": "1", "limits.burst": "7",
	})
	require.NoError(t, err)
	require.Equal(t, []string{"http.listen", "limits.rate", "no.such", "ttl.receipt"}, passed)
	require.Equal(t, 2*time.Hour, next.Config.TTL.Receipt)
	require.InDelta(t, 7, next.Config.Limits.Burst, 0)
	for name, origin := range map[string]string{
		"ttl.receipt": "file " + path, "limits.rate": "environment ONCEGATE_LIMITS__RATE", "limits.burst": "api", "http.listen": "default",
	} {
		s, ok := next.Setting(name)
		require.True(t, ok)
		require.Equal(t, origin, s.Origin)
		require.Equal(t, name == "ttl.receipt" || name == "limits.rate", s.Pinned, name)
	}
	_, ok := next.Setting("no.such")
	require.False(t, ok)
}

func TestDifferencesAreToldApart(t *testing.T) {
	t.Parallel()
	a, b := Default(), Default()
	a.MySQL.DSN, b.MySQL.DSN = NewSecret("x"), NewSecret("x") // two pointers to equal texts
	live, fixed := Differences(&a, &b)
	require.Empty(t, live)
	require.Empty(t, fixed)
	b.MySQL.DSN, b.Redis.Addrs, b.TTL.Receipt, b.Log.Level = NewSecret("y"), []string{"r:1"}, time.Hour, "warn"
	live, fixed = Differences(&a, &b)
	require.Equal(t, []string{"ttl.receipt", "log.level"}, live)
	require.Equal(t, []string{"mysql.dsn", "redis.addrs"}, fixed)
}

func TestDescriptionsShowNoSecret(t *testing.T) {
	t.Parallel()
	l, err := Load(Sources{Environ: []string{"ONCEGATE_REDIS__PASSWORD=hunter2"}})
	require.NoError(t, err)
	s, _ := l.Setting("redis.password")
	require.Equal(t, "***", s.Value)
	require.True(t, s.Pinned)
	s, _ = l.Setting("cache.mac_key")
	require.Empty(t, s.Value)
	for _, s := range l.Settings() {
		require.NotContains(t, s.Value+s.Default+s.Origin, "hunter2")
	}
}

func TestTheManualListsWhatIsLive(t *testing.T) {
	t.Parallel()
	var list bytes.Buffer
	require.NoError(t, WriteLive(&list))
	manual, err := os.ReadFile("../docs/operating.md")
	require.NoError(t, err)
	require.True(t, bytes.Contains(manual, list.Bytes()), "docs/operating.md is behind: put this list into it:\n%s", list.String())
}
