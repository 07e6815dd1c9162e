package main

import (
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
)

func TestASettingIsChangedKeptAndTakenBack(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	ops, alice := newOperator(t), newCustomer(t, cfg, "alice")
	before, version := ops.setting(r, "ttl.receipt")
	require.Equal(t, shown{"ttl.receipt", "1d", "1d", "duration", "default", true, false}, before)
	require.Equal(t, `"0"`, version)

	dry := ops.do(r, http.MethodPut, "/admin/v1/config/ttl.receipt", `{"value":"48h","reason":"sale","dry_run":true}`, `"0"`)
	require.JSONEq(t, `{"version":0,"name":"ttl.receipt","before":"1d","after":"2d","dry_run":true}`, dry.body)
	require.Equal(t, 24*time.Hour, fastWindow(t, alice, r))

	done := ops.do(r, http.MethodPut, "/admin/v1/config/ttl.receipt", `{"value":"48h","reason":"sale tonight"}`, `"0"`)
	require.JSONEq(t, `{"version":1,"name":"ttl.receipt","before":"1d","after":"2d","dry_run":false}`, done.body)
	require.Equal(t, 48*time.Hour, fastWindow(t, alice, r), "in force at once")
	require.InDelta(t, 1, metric(t, r, "oncegate_config_version"), 0)
	require.InDelta(t, 172800, metric(t, r, `oncegate_ttl_seconds{setting="ttl.receipt"}`), 0)
	late := ops.do(r, http.MethodPut, "/admin/v1/config/ttl.receipt", `{"value":"1h","reason":"late"}`, `"0"`)
	require.Equal(t, http.StatusPreconditionFailed, late.status, late.body)
	require.Regexp(t, `The settings have version \\"1-[0-9a-f]{12}\\", not \\"0\\".`, late.body)
	require.Equal(t, done.header.Get("ETag"), late.header.Get("ETag"))
	require.NoError(t, r.stopped())

	again := start(t, cfg)
	require.Equal(t, 48*time.Hour, fastWindow(t, alice, again), "a restart keeps it")
	kept, version := ops.setting(again, "ttl.receipt")
	require.Equal(t, shown{"ttl.receipt", "2d", "1d", "duration", "api", true, false}, kept)
	require.Equal(t, done.header.Get("ETag"), version)
	ops.change(again, "ttl.receipt", "null")
	back, _ := ops.setting(again, "ttl.receipt")
	require.Equal(t, before, back)
	log := ops.do(again, http.MethodGet, "/admin/v1/config/changes", "", "")
	require.Regexp(t, `^\{"changes":\[\{"version":2,"name":"ttl.receipt","before":"2d","after":"1d","reason":"a test","changed_by":"loopback","changed_at":"[^"]+"\},`+
		`\{"version":1,"name":"ttl.receipt","before":"1d","after":"2d","reason":"sale tonight",`, log.body)
}

func TestEveryLiveSettingReachesWhatUsesIt(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	app, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	r := serving(t, app)
	ops, alice := newOperator(t), newCustomer(t, cfg, "alice")
	values := map[string]string{
		"http.max_order_body": `"2KiB"`, "http.max_batch_body": `"3KiB"`, "http.max_batch_rows": `7`, "http.max_in_flight": `900`,
		"cache.confirm_receipts": `true`, "cache.local_ttl": `"3s"`, "breaker.failures": `9`, "breaker.open_for": `"7s"`,
		"ttl.in_progress": `"11s"`, "ttl.receipt": `"2h"`, "idempotency.required": `false`, "idempotency.reused_status": `422`,
		"limits.rate": `1.5`, "limits.burst": `3`, "retention.responses": `"40d"`, "retention.compact_every": `"2h"`, "log.level": `"debug"`,
		"in_progress_grace": `"3s"`, "request_budget": `"8500ms"`, "max_wait": `"4s"`,
	}
	for name, value := range values {
		ops.change(r, name, value)
	}
	loaded := configs.Loaded{Config: configs.Default()}
	for _, s := range loaded.Settings() {
		_, tried := values[s.Name]
		require.Equal(t, s.Live, tried, s.Name)
	}
	require.JSONEq(t, `{"idempotency_key":{"header":"Idempotency-Key","pattern":"^[!#-+\\--\\[\\]-~]{1,255}$","required":false,"reused_status":422,"refusals_remembered":true},
		"limits":{"order_body_bytes":2048,"batch_body_bytes":3072,"batch_rows":7,"max_wait_seconds":4,"page_size":100,"rate_per_second":1.5,"rate_burst":3},
		"windows":{"fast_window_seconds":7200,"response_retention_seconds":3456000,"key_retention":"as long as the order"}}`,
		alice.get(r, "/api/policy").body)
	require.Equal(t, http.StatusCreated, alice.post(r, "", potsticker).status, "without a key")
	filter, decision, web := app.settings.cacheTuning(), app.settings.orderTuning(), app.settings.httpTuning()
	require.Equal(t, []any{3 * time.Second, 9, 7 * time.Second, 11 * time.Second, 2 * time.Hour},
		[]any{filter.LocalTTL, filter.BreakerFailures, filter.BreakerOpenFor, filter.InProgressTTL, filter.ReceiptTTL})
	require.Equal(t, []any{true, 3 * time.Second, 8500 * time.Millisecond, 4 * time.Second},
		[]any{decision.ConfirmReceipts, decision.InProgressGrace, decision.Budget, decision.MaxWait})
	require.Equal(t, 900, web.MaxInFlight)
	require.Equal(t, slog.LevelDebug, app.settings.live.Level.Level())
}

func TestChangesThatMayNotBeAreRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := fileOf(t, dir, "limits: {burst: 9}")
	r := startLive(t, Live{Sources: &configs.Sources{File: path, Environ: []string{"ONCEGATE_MAX_WAIT=5s"}}}, t.Output())
	ops := newOperator(t)
	for _, c := range []struct {
		name, value string
		status      int
		says        string
	}{
		{"no.such", `"1"`, 404, "NOT_FOUND"},
		{"http.listen", `"127.0.0.1:1"`, 409, "SETTING_FIXED"},
		{"mysql.dsn", `"x"`, 409, "SETTING_FIXED"},
		{"limits.burst", `3`, 409, "SETTING_PINNED"},
		{"limits.burst", `3`, 409, "given by: file " + path},
		{"max_wait", `"1s"`, 409, "given by: environment ONCEGATE_MAX_WAIT"},
		{"ttl.receipt", `"soon"`, 400, "ttl.receipt must be a duration"},
		{"ttl.receipt", `"9s"`, 400, "ttl.in_progress (10s) must be shorter than ttl.receipt (9s)"},
		{"ttl.in_progress", `"19s"`, 400, "ttl.in_progress (19s) must be shorter than http.write_timeout (18s)"},
		{"request_budget", `"11s"`, 400, "request_budget (11s) must be shorter than ttl.in_progress (10s)"},
		{"log.level", `"loud"`, 400, "must be one of"},
	} {
		a := ops.put(r, c.name, c.value)
		require.Equal(t, c.status, a.status, a.body)
		require.Contains(t, a.body, c.says)
	}
	_, version := ops.setting(r, "ttl.receipt")
	require.Equal(t, `"0"`, version)
	burst, _ := ops.setting(r, "limits.burst")
	require.Equal(t, shown{"limits.burst", "9", "20", "number", "file " + path, true, true}, burst)
	wait, _ := ops.setting(r, "max_wait")
	require.Equal(t, "environment ONCEGATE_MAX_WAIT", wait.Origin)
	secret := ops.do(r, http.MethodGet, "/admin/v1/config", "", "")
	require.Contains(t, secret.body, `"name":"auth.hs256_secret","value":"",`)
}

func TestAChangeOfASettingThatIsPinnedNowCanBeTakenBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sources := &configs.Sources{File: fileOf(t, dir, "")}
	r, ops := startLive(t, Live{Sources: sources}, t.Output()), newOperator(t)
	ops.change(r, "limits.burst", "30")
	require.NoError(t, r.stopped())

	sources = &configs.Sources{File: fileOf(t, dir, "limits: {burst: 9}")}
	r = startLive(t, Live{Sources: sources}, t.Output())
	ops.change(r, "limits.burst", "null")
	s, version := ops.setting(r, "limits.burst")
	require.Equal(t, "9", s.Value)
	require.Regexp(t, `^"2-`, version)
	require.NoError(t, r.stopped())

	sources = &configs.Sources{File: fileOf(t, dir, "")}
	r = startLive(t, Live{Sources: sources}, t.Output())
	s, _ = ops.setting(r, "limits.burst")
	require.Equal(t, "20", s.Value, "the change of 30 sleeps no longer")
}

func TestAChangeThatChangesNothingMakesNoVersion(t *testing.T) {
	t.Parallel()
	r, ops := start(t, embedded(t.TempDir())), newOperator(t)
	unchanged := func(version, name, value string) {
		t.Helper()
		a := ops.put(r, name, value)
		require.Equal(t, http.StatusOK, a.status, a.body)
		require.Regexp(t, `^"`+version+`(-[0-9a-f]{12})?"$`, a.header.Get("ETag"))
		require.Contains(t, a.body, `{"version":`+version+`,`)
	}
	unchanged("0", "limits.burst", "null")
	ops.change(r, "cache.local_ttl", `"0"`)
	unchanged("1", "cache.local_ttl", `"0s"`)
	unchanged("1", "max_wait", "null")
	_, version := ops.setting(r, "cache.local_ttl")
	require.Regexp(t, `^"1-`, version)
	log := ops.do(r, http.MethodGet, "/admin/v1/config/changes", "", "")
	require.Equal(t, 1, strings.Count(log.body, `"version"`), log.body)
}

// TestAVersionThatWasLostIsNotTheOneThatTookItsNumber: a failover takes the newest
// change along, another one gets its number, and whoever read the lost one must
// not change on top of what he never saw.
func TestAVersionThatWasLostIsNotTheOneThatTookItsNumber(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r, ops := start(t, cfg), newOperator(t)
	ops.change(r, "ttl.receipt", `"48h"`)
	_, lost := ops.setting(r, "ttl.receipt")
	db, err := sql.Open("sqlite", "file:"+databaseFile(&cfg)+"?_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "DELETE FROM config_changes")
	require.NoError(t, errors.Join(err, db.Close()))
	eventually(t, "the loss is seen", func() bool {
		_, version := ops.setting(r, "ttl.receipt")
		return version == `"0"`
	})
	ops.change(r, "ttl.receipt", `"2h"`)
	_, theirs := ops.setting(r, "ttl.receipt")
	require.Regexp(t, `^"1-`, lost)
	require.Regexp(t, `^"1-`, theirs)

	for _, tag := range []string{lost, `"1"`} {
		late := ops.do(r, http.MethodPut, "/admin/v1/config/ttl.receipt", `{"value":"1h","reason":"late"}`, tag)
		require.Equal(t, http.StatusPreconditionFailed, late.status, late.body)
		require.Equal(t, theirs, late.header.Get("ETag"))
	}
	now, _ := ops.setting(r, "ttl.receipt")
	require.Equal(t, "2h", now.Value)
}

// TestTheSettingsOfARunningGatewayArePrintedLikeAConfiguration: what differs is
// what differs.
func TestTheSettingsOfARunningGatewayArePrintedLikeAConfiguration(t *testing.T) {
	t.Parallel()
	path := fileOf(t, t.TempDir(), "auth: {hs256_secret: 0123456789abcdef0123456789abcdef}\nlimits: {rate: 2.5}\n"+
		"mysql: {dsn: embedded}\nredis: {addrs: ['127.0.0.1:1']}\ncache: {mac_key: 0123456789abcdef, prefix: 'yes'}\nretention: {responses: 45d}")
	r := startLive(t, Live{Sources: &configs.Sources{File: path}}, io.Discard)
	vars := []string{"ONCEGATE_CONFIG=" + path}
	flag := "--admin.listen=" + r.AdminAddr()
	lines := func(args ...string) []string {
		code, stdout, stderr := command(t, vars, append([]string{"config", "print", flag}, args...)...)
		require.Equal(t, exitOK, code, stderr)
		return strings.Split(stdout, "\n")
	}
	differences := func(args ...string) (in, running []string) {
		a, b := lines(args...), lines(append(args, "--running")...)
		require.Len(t, b, len(a))
		for i := range a {
			if a[i] != b[i] {
				in, running = append(in, a[i]), append(running, b[i])
			}
		}
		return in, running
	}
	in, running := differences()
	require.Equal(t, []string{"  listen: " + r.AdminAddr()}, in, "the flag is of the command alone")
	require.Equal(t, []string{"  listen: 127.0.0.1:0"}, running)
	require.Contains(t, lines("--running"), "  hs256_secret: '[redacted]'")

	ops := newCustomer(t, r.settings.live.Loaded.Config, "ann")
	secret, err := signingSecret(&r.settings.live.Loaded.Config)
	require.NoError(t, err)
	token, err := mint(&r.settings.live.Loaded.Config, secret, tokenRequest{user: "ann", scopes: []string{gateway.ScopeAdmin}, ttl: time.Hour})
	require.NoError(t, err)
	ops.bearer = "Bearer " + token
	version := `"0"`
	for i := range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+r.AdminAddr()+"/admin/v1/config/ttl.receipt",
			strings.NewReader(`{"value":"`+strconv.Itoa(48*(i+1))+`h","reason":"a test"}`))
		require.NoError(t, err)
		req.Header.Set("Authorization", ops.bearer)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("If-Match", version)
		resp, err := ops.http.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
		version = resp.Header.Get("ETag")
	}
	in, running = differences("--origin")
	require.Equal(t, []string{"  listen: " + r.AdminAddr() + "  # flag --admin.listen", "  receipt: 1d  # default"}, in)
	require.Equal(t, []string{"  listen: 127.0.0.1:0  # file " + path, "  receipt: 4d  # api"}, running)

	code, _, _ := command(t, []string{"ONCEGATE_ADMIN__LISTEN=127.0.0.1:1"}, "config", "print", "--running")
	require.Equal(t, exitFailed, code)
}

// The command keeps to what the running gateways promise.
func TestTheCompactCommandFollowsWhatWasChanged(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	cfg.Retention.CompactEvery = 0
	r := start(t, cfg)
	require.Equal(t, http.StatusCreated, newCustomer(t, cfg, "alice").post(r, "k", potsticker).status)
	db, err := sql.Open("sqlite", "file:"+databaseFile(&cfg)+"?_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "UPDATE idempotency_records SET created_at = created_at - ?", (35 * 24 * time.Hour).Milliseconds())
	require.NoError(t, errors.Join(err, db.Close()))
	ops, vars := newOperator(t), []string{"ONCEGATE_DATA_DIR=" + cfg.DataDir}
	ops.change(r, "retention.responses", `"40d"`)
	code, stdout, stderr := command(t, vars, "compact")
	require.Equal(t, exitOK, code, stderr)
	require.JSONEq(t, `{"emptied":0,"removed":0}`, stdout)
	ops.change(r, "retention.responses", "null")
	code, stdout, stderr = command(t, vars, "compact")
	require.Equal(t, exitOK, code, stderr)
	require.JSONEq(t, `{"emptied":1,"removed":0}`, stdout)
}

// Compaction follows a change from never to often.
func TestCompactionFollowsItsSetting(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	cfg.Retention.CompactEvery = 0
	r := start(t, cfg)
	db, err := sql.Open("sqlite", "file:"+databaseFile(&cfg)+"?_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	runs := func() (n int) {
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM compaction").Scan(&n))
		return n
	}
	require.Zero(t, runs())
	newOperator(t).change(r, "retention.compact_every", `"1s"`)
	eventually(t, "a run of the compaction", func() bool { return runs() == 1 })
}
