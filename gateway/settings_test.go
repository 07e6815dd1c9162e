package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// settingsFake keeps one setting and the log of its changes.
type settingsFake struct {
	mu      sync.Mutex
	changes []gateway.SettingChanged
	fail    error
}

func (f *settingsFake) Settings() gateway.SettingsView {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := gateway.SettingsView{Settings: []gateway.Setting{
		{Name: "ttl.receipt", Value: "1d", Default: "1d", Type: "duration", Origin: "default", Reloadable: true, Description: "a window"},
		{Name: "mysql.dsn", Value: "***", Type: "secret", Origin: "environment ONCEGATE_MYSQL__DSN", Pinned: true, Description: "a \"DSN\""},
	}}
	v.Tag = "0"
	if n := len(f.changes); n > 0 {
		last := f.changes[n-1]
		v.Version, v.Tag, v.ChangedAt, v.ChangedBy = last.Version, last.Tag, last.At, last.By
		v.Settings[0].Value, v.Settings[0].Origin = last.After, "api"
	}
	return v
}

func (f *settingsFake) ChangeSetting(_ context.Context, c gateway.SettingChange) (gateway.SettingChanged, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	done := gateway.SettingChanged{
		Version: int64(len(f.changes)), Tag: strconv.Itoa(len(f.changes)), Name: c.Name, Before: "1d", After: "1d",
		Reason: c.Reason, By: c.By, At: time.Unix(1_800_000_000, 0),
	}
	if c.Value != nil {
		done.After = *c.Value
	}
	switch {
	case f.fail != nil:
		return gateway.SettingChanged{}, f.fail
	case c.On != done.Tag:
		return gateway.SettingChanged{}, fmt.Errorf("change: %w", gateway.ErrSettingsVersion)
	case !c.DryRun:
		done.Version++
		done.Tag = strconv.FormatInt(done.Version, 10)
		f.changes = append(f.changes, done)
	}
	return done, nil
}

func (f *settingsFake) SettingChanges(_ context.Context, limit int) ([]gateway.SettingChanged, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var newest []gateway.SettingChanged
	for i := len(f.changes) - 1; i >= 0 && len(newest) < limit; i-- {
		newest = append(newest, f.changes[i])
	}
	return newest, f.fail
}

func (f *settingsFake) NearestSetting(name string) string {
	if name == "ttl.reciept" {
		return "ttl.receipt"
	}
	return ""
}

func settingsDesk(t *testing.T) (*desk, *settingsFake) {
	t.Helper()
	f := &settingsFake{}
	return newDesk(t, func(o *gateway.AdminOptions) { o.Settings = f }), f
}

const (
	receiptTTL = "/admin/v1/config/ttl.receipt"
	longer     = `{"value":"48h","reason":"sale tonight"}`
)

func TestSettingsAreShownAndChanged(t *testing.T) {
	t.Parallel()
	d, f := settingsDesk(t)
	r := d.ask(here, http.MethodGet, "/admin/v1/config", "")
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.Equal(t, `"0"`, r.header.Get("ETag"))
	require.JSONEq(t, `{"version":0,"settings":[
		{"name":"ttl.receipt","value":"1d","default":"1d","type":"duration","origin":"default","reloadable":true,"pinned":false,"description":"a window"},
		{"name":"mysql.dsn","value":"***","default":"","type":"secret","origin":"environment ONCEGATE_MYSQL__DSN","reloadable":false,"pinned":true,"description":"a \"DSN\""}]}`, r.body)

	dry := d.ask(here, http.MethodPut, receiptTTL, `{"value":"48h","reason":"sale","dry_run":true}`, with("If-Match", `"0"`))
	require.JSONEq(t, `{"version":0,"name":"ttl.receipt","before":"1d","after":"48h","dry_run":true}`, dry.body)
	require.Equal(t, `"0"`, dry.header.Get("ETag"))

	r = d.ask(elsewhere, http.MethodPut, receiptTTL, longer, with("If-Match", `"0"`), as("ops", gateway.ScopeAdmin))
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.JSONEq(t, `{"version":1,"name":"ttl.receipt","before":"1d","after":"48h","dry_run":false}`, r.body)
	require.Equal(t, `"1"`, r.header.Get("ETag"))

	r = d.ask(here, http.MethodPut, receiptTTL, longer, with("If-Match", `"0"`))
	require.Equal(t, http.StatusPreconditionFailed, r.status)
	require.Equal(t, "VERSION_MISMATCH", r.problem(t).Code)

	r = d.ask(here, http.MethodPut, receiptTTL, `{"value":null,"reason":"over"}`, with("If-Match", `"1"`))
	require.JSONEq(t, `{"version":2,"name":"ttl.receipt","before":"1d","after":"1d","dry_run":false}`, r.body)
	r = d.ask(here, http.MethodGet, receiptTTL, "")
	require.Equal(t, `"2"`, r.header.Get("ETag"))
	require.Contains(t, r.body, `"origin":"api"`)
	require.Contains(t, d.ask(here, http.MethodGet, "/admin/v1/config", "").body, `"version":2,"changed_at":"2027-01-15T08:00:00.000Z","changed_by":"loopback"`)

	r = d.ask(here, http.MethodGet, "/admin/v1/config/changes", "")
	require.JSONEq(t, `{"changes":[
		{"version":2,"name":"ttl.receipt","before":"1d","after":"1d","reason":"over","changed_by":"loopback","changed_at":"2027-01-15T08:00:00.000Z"},
		{"version":1,"name":"ttl.receipt","before":"1d","after":"48h","reason":"sale tonight","changed_by":"ops","changed_at":"2027-01-15T08:00:00.000Z"}]}`, r.body)
	require.NotContains(t, d.ask(here, http.MethodGet, "/admin/v1/config/changes?limit=1", "").body, `"version":1`)
	require.Len(t, f.changes, 2)
}

func TestChangesThatAreNotWellFormedReachNothing(t *testing.T) {
	t.Parallel()
	d, f := settingsDesk(t)
	match := with("If-Match", `"0"`)
	for _, c := range []struct {
		name, path, body string
		headers          []header
		status           int
		code             string
		paths            []string
	}{
		{"no If-Match", receiptTTL, longer, nil, 428, "PRECONDITION_REQUIRED", nil},
		{"any version", receiptTTL, longer, []header{with("If-Match", "*")}, 400, "INVALID_REQUEST", []string{"If-Match"}},
		{"weak tag", receiptTTL, longer, []header{with("If-Match", `W/"0"`)}, 400, "INVALID_REQUEST", []string{"If-Match"}},
		{"unquoted", receiptTTL, longer, []header{with("If-Match", "0")}, 400, "INVALID_REQUEST", []string{"If-Match"}},
		{"another of the same number", receiptTTL, longer, []header{with("If-Match", `"0-5f3a"`)}, 412, "VERSION_MISMATCH", nil},
		{"no such tag", receiptTTL, longer, []header{with("If-Match", `"A b"`)}, 400, "INVALID_REQUEST", []string{"If-Match"}},
		{"endless", receiptTTL, longer, []header{with("If-Match", `"`+strings.Repeat("7", 65)+`"`)}, 400, "INVALID_REQUEST", []string{"If-Match"}},
		{"two versions", receiptTTL, longer, []header{with("If-Match", `"0", "1"`)}, 400, "INVALID_REQUEST", []string{"If-Match"}},
		{"no reason", receiptTTL, `{"value":"48h"}`, []header{match}, 400, "INVALID_REQUEST", []string{"reason"}},
		{"blank reason", receiptTTL, `{"value":"48h","reason":"  "}`, []header{match}, 400, "INVALID_REQUEST", []string{"reason"}},
		{"long reason", receiptTTL, `{"value":"48h","reason":"` + strings.Repeat("ä", 501) + `"}`, []header{match}, 400, "INVALID_REQUEST", []string{"reason"}},
		{"a reason of two lines", receiptTTL, `{"value":"48h","reason":"x\n2026-08-27 somebody else"}`, []header{match}, 400, "INVALID_REQUEST", []string{"reason"}},
		{"a reason that turns the line around", receiptTTL, `{"value":"48h","reason":"\u202eelas"}`, []header{match}, 400, "INVALID_REQUEST", []string{"reason"}},
		{"a reason that clears the screen", receiptTTL, `{"value":"48h","reason":"\u001b[2Jx"}`, []header{match}, 400, "INVALID_REQUEST", []string{"reason"}},
		{"no value", receiptTTL, `{"reason":"x"}`, []header{match}, 400, "INVALID_REQUEST", []string{"value"}},
		{"long value", receiptTTL, `{"value":"` + strings.Repeat("x", 256) + `","reason":"x"}`, []header{match}, 400, "INVALID_REQUEST", []string{"value"}},
		{"a list", receiptTTL, `{"value":["48h"],"reason":"x"}`, []header{match}, 400, "INVALID_REQUEST", []string{"value"}},
		{"value twice", receiptTTL, `{"value":"1h","value":null,"reason":"x"}`, []header{match}, 400, "INVALID_REQUEST", []string{"value"}},
		{"dry run null", receiptTTL, `{"value":"48h","reason":"x","dry_run":null}`, []header{match}, 400, "INVALID_REQUEST", []string{"dry_run"}},
		{"dry run as a text", receiptTTL, `{"value":"48h","reason":"x","dry_run":"yes"}`, []header{match}, 400, "INVALID_REQUEST", []string{"dry_run"}},
		{"a misspelt dry run", receiptTTL, `{"value":"48h","reason":"x","dryrun":true}`, []header{match}, 400, "INVALID_REQUEST", []string{"dryrun"}},
		{"cut short", receiptTTL, `{"value":"48h","reason":"x`, []header{match}, 400, "INVALID_REQUEST", []string{"reason"}},
		{"wrong type", receiptTTL, longer, []header{match, with("Content-Type", "text/plain")}, 415, "UNSUPPORTED_MEDIA_TYPE", nil},
		{"wrong scope", receiptTTL, longer, []header{match, as("alice", gateway.ScopeOrders)}, 403, "FORBIDDEN", nil},
		{"the whole", "/admin/v1/config", longer, []header{match}, 405, "METHOD_NOT_ALLOWED", nil},
		{"the log", "/admin/v1/config/changes", longer, []header{match}, 405, "METHOD_NOT_ALLOWED", nil},
	} {
		r := d.ask(here, http.MethodPut, c.path, c.body, c.headers...)
		require.Equal(t, c.status, r.status, "%s: %s", c.name, r.body)
		p := r.problem(t)
		require.Equal(t, c.code, p.Code, c.name)
		require.Equal(t, c.paths, p.paths(), c.name)
	}
	require.Empty(t, f.changes)
	for value, text := range map[string]string{"5": "5", "2.5": "2.5", "true": "true", "false": "false"} {
		r := d.ask(here, http.MethodPut, receiptTTL, `{"value":`+value+`,"reason":"x","dry_run":true}`, match)
		require.Contains(t, r.body, `"after":"`+text+`"`)
	}
	require.Equal(t, http.StatusUnauthorized, d.ask(elsewhere, http.MethodGet, "/admin/v1/config", "").status)
	require.Equal(t, "NOT_FOUND", d.ask(here, http.MethodGet, "/admin/v1/config/no.such", "").problem(t).Code)
	for _, limit := range []string{"0", "501", "many", "-1"} {
		require.Equal(t, []string{"limit"}, d.ask(here, http.MethodGet, "/admin/v1/config/changes?limit="+limit, "").problem(t).paths())
	}
	require.Equal(t, "GET, PUT", d.ask(here, http.MethodPost, receiptTTL, longer).header.Get("Allow"))
}

// once believes a token the first time it is shown.
type once struct {
	gateway.Authenticator

	shown atomic.Int32
}

func (o *once) Authenticate(ctx context.Context, token string) (gateway.Identity, error) {
	if o.shown.Add(1) > 1 {
		return gateway.Identity{}, gateway.ErrTokenInvalid
	}
	return o.Authenticator.Authenticate(ctx, token)
}

func TestAChangeIsItsOperatorsAlsoWhenTheTokenExpiresMeanwhile(t *testing.T) {
	t.Parallel()
	f := &settingsFake{}
	d := newDesk(t, func(o *gateway.AdminOptions) { o.Settings, o.Auth = f, &once{Authenticator: o.Auth} })
	r := d.ask(elsewhere, http.MethodPut, receiptTTL, longer, with("If-Match", `"0"`), as("ops", gateway.ScopeAdmin))
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.Len(t, f.changes, 1)
	require.Equal(t, "ops", f.changes[0].By)
}

func TestRefusedChangesSayWhy(t *testing.T) {
	t.Parallel()
	d, f := settingsDesk(t)
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{gateway.ErrSettingUnknown, 404, "NOT_FOUND"},
		{gateway.ErrSettingFixed, 409, "SETTING_FIXED"},
		{&gateway.SettingPinnedError{Origin: "file a.yaml"}, 409, "SETTING_PINNED"},
		{gateway.ErrSettingsVersion, 412, "VERSION_MISMATCH"},
		{&gateway.SettingInvalidError{Faults: []string{"a must be shorter than b"}}, 400, "INVALID_REQUEST"},
		{order.ErrUnavailable, 503, "UNAVAILABLE"},
		{errors.New("some fault"), 500, "INTERNAL"},
	} {
		f.fail = fmt.Errorf("change: %w", c.err)
		r := d.ask(here, http.MethodPut, receiptTTL, longer, with("If-Match", `"0"`))
		require.Equal(t, c.status, r.status, r.body)
		require.Equal(t, c.code, r.problem(t).Code)
		if c.status == http.StatusBadRequest {
			require.Equal(t, []string{"value"}, r.problem(t).paths())
			require.Contains(t, r.body, "a must be shorter than b")
		}
	}
	f.fail = order.ErrUnavailable
	require.Equal(t, http.StatusServiceUnavailable, d.ask(here, http.MethodGet, "/admin/v1/config/changes", "").status)
}

func TestAMisspeltSettingIsAskedAbout(t *testing.T) {
	t.Parallel()
	d, f := settingsDesk(t)
	f.fail = gateway.ErrSettingUnknown
	for name, detail := range map[string]string{
		"ttl.reciept": "There is no such setting: did you mean ttl.receipt?",
		"nonsense":    "There is no such setting.",
	} {
		read := d.ask(here, http.MethodGet, "/admin/v1/config/"+name, "")
		change := d.ask(here, http.MethodPut, "/admin/v1/config/"+name, longer, with("If-Match", `"0"`))
		for _, r := range []reply{read, change} {
			require.Equal(t, http.StatusNotFound, r.status)
			require.Contains(t, r.body, `"detail":"`+detail+`"`)
		}
	}
}

func TestWithoutSettingsThereAreNoSuchRoutes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	require.Equal(t, http.StatusNotFound, d.ask(here, http.MethodGet, "/admin/v1/config", "").status)
}
