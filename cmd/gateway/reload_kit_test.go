package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
)

// soonEnough is far more than anything here takes, for a busy machine, and less
// than the time after which files are looked at without an event.
const soonEnough = watchNet * 2 / 3

// hangups is held by a test that sends this process SIGHUP, or must hear nobody's.
var hangups sync.Mutex

// aloneWithHangup keeps the signal from other tests, and theirs from this one, until
// the end: it reaches every command that runs.
func aloneWithHangup(t *testing.T) {
	t.Helper()
	hangups.Lock()
	t.Cleanup(hangups.Unlock)
}

// startLive runs an App from a file until the test ends.
func startLive(t *testing.T, live Live, log io.Writer) *running {
	t.Helper()
	loaded, err := configs.Load(*live.Sources)
	require.NoError(t, err)
	live.Loaded, live.Level = loaded, new(slog.LevelVar)
	logger, err := newLeveledLogger(log, loaded.Config.Log, live.Level)
	require.NoError(t, err)
	app, err := NewLive(t.Context(), live, logger)
	require.NoError(t, err)
	return serving(t, app)
}

// fileOf writes a configuration file that serves from dir on free ports, with
// more settings below, and returns its path.
func fileOf(t *testing.T, dir, more string) string {
	t.Helper()
	path := filepath.Join(dir, "oncegate.yaml")
	require.NoError(t, os.WriteFile(path, []byte(yamlOf(dir, more)), 0o600))
	return path
}

// yamlOf is the text of such a file. The database has as long as the default of
// request_budget lets it have, see embedded.
func yamlOf(dir, more string) string {
	return fmt.Sprintf("data_dir: %s\nhttp: {listen: '127.0.0.1:0'}\nadmin: {listen: '127.0.0.1:0'}\nmysql.read_timeout: 5900ms\n%s\n", filepath.Join(dir, "data"), more)
}

// operator asks the admin listeners of gateways.
type operator struct {
	t    *testing.T
	http *http.Client
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &operator{t, &http.Client{Transport: transport, Timeout: soonEnough}}
}

func (o *operator) do(r *running, method, path, body, version string) answer {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), method, "http://"+r.AdminAddr()+path, strings.NewReader(body))
	require.NoError(o.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if version != "" {
		req.Header.Set("If-Match", version)
	}
	resp, err := o.http.Do(req)
	require.NoError(o.t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(o.t, err)
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// shown is a setting as the API shows it.
type shown struct {
	Name, Value, Default, Type, Origin string
	Reloadable, Pinned                 bool
}

func (o *operator) setting(r *running, name string) (s shown, version string) {
	o.t.Helper()
	a := o.do(r, http.MethodGet, "/admin/v1/config/"+name, "", "")
	require.Equal(o.t, http.StatusOK, a.status, a.body)
	require.NoError(o.t, json.Unmarshal([]byte(a.body), &s))
	return s, a.header.Get("ETag")
}

// put asks for a change on top of what this gateway shows.
func (o *operator) put(r *running, name, value string) answer {
	o.t.Helper()
	_, version := o.setting(r, "ttl.receipt")
	return o.do(r, http.MethodPut, "/admin/v1/config/"+name, `{"value":`+value+`,"reason":"a test"}`, version)
}

// change is put that must succeed.
func (o *operator) change(r *running, name, value string) {
	o.t.Helper()
	a := o.put(r, name, value)
	require.Equal(o.t, http.StatusOK, a.status, a.body)
}

// fastWindow is ttl.receipt as clients see it.
func fastWindow(t *testing.T, c *customer, r *running) time.Duration {
	t.Helper()
	var policy struct {
		Windows struct {
			Seconds int64 `json:"fast_window_seconds"`
		}
	}
	a := c.get(r, "/api/policy")
	require.NoError(t, json.Unmarshal([]byte(a.body), &policy), a.body)
	return time.Duration(policy.Windows.Seconds) * time.Second
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, soonEnough, 20*time.Millisecond, what)
}

// metric reads one sample of a gateway.
func metric(t *testing.T, r *running, sample string) float64 {
	t.Helper()
	for line := range strings.Lines(metricsOf(t, r)) {
		if text, ok := strings.CutPrefix(line, sample+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			require.NoError(t, err)
			return v
		}
	}
	t.Fatalf("there is no %s", sample)
	return 0
}
