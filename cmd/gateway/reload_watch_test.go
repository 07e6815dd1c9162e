package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/internal/testserver"
)

// logged is a log that can be read while it is written.
type logged struct{ testserver.Output }

func (l *logged) has(text string) bool { return strings.Contains(l.String(), text) }

const receipt2h, receipt3h = "ttl: {receipt: 2h}", "ttl: {receipt: 3h}"

func TestAChangedFileIsInForce(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir, path, text string){
		"Rewritten": func(t *testing.T, _, path, text string) {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		},
		"Replaced": func(t *testing.T, dir, path, text string) {
			fresh := filepath.Join(dir, ".oncegate.yaml.swp")
			require.NoError(t, os.WriteFile(fresh, []byte(text), 0o600))
			require.NoError(t, os.Rename(fresh, path))
		},
		"RemovedAndMadeAgain": func(t *testing.T, _, path, text string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := fileOf(t, dir, receipt2h)
			r := startLive(t, Live{Sources: &configs.Sources{File: path}}, t.Output())
			ops := newOperator(t)
			window := func() string { s, _ := ops.setting(r, "ttl.receipt"); return s.Value }
			require.Equal(t, "2h", window())
			change(t, dir, path, yamlOf(dir, receipt3h))
			eventually(t, "the new value", func() bool { return window() == "3h" })
			change(t, dir, path, yamlOf(dir, receipt2h))
			eventually(t, "the old value", func() bool { return window() == "2h" })
		})
	}
}

// Kubernetes mounts a ConfigMap as links through ..data, which is replaced as a
// whole: the file's own link never changes.
func TestAMountedDirectoryIsFollowedThroughItsLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	publish := func(version, more string) {
		require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, version, "oncegate.yaml"), []byte(yamlOf(dir, more)), 0o600))
		require.NoError(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	publish("..2027_01", receipt2h)
	path := filepath.Join(dir, "oncegate.yaml")
	require.NoError(t, os.Symlink(filepath.Join("..data", "oncegate.yaml"), path))
	r := startLive(t, Live{Sources: &configs.Sources{File: path}}, t.Output())
	ops := newOperator(t)
	for version, want := range map[string]string{"..2027_02": "3h", "..2027_03": "4h"} {
		publish(version, "ttl: {receipt: "+want+"}")
		eventually(t, want, func() bool { s, _ := ops.setting(r, "ttl.receipt"); return s.Value == want })
	}
}

func TestAWrongFileIsRefusedWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := fileOf(t, dir, receipt2h)
	log := &logged{}
	r := startLive(t, Live{Sources: &configs.Sources{File: path}}, log)
	ops := newOperator(t)
	refused := func() bool { return metric(t, r, `oncegate_config_refused{source="file"}`) == 1 }
	for _, c := range []struct{ more, says string }{
		{"ttl: [", "oncegate.yaml"},
		{"ttl: {receipt: 3h, in_progress: 1h}", "ttl.in_progress (1h) must be shorter than http.write_timeout (18s)"},
		{"ttl: {receipt: 3h}\nlimit: {rate: 1}", "limit.rate"},
		{"ttl: {receipt: 3h}\nledger: {workers: 5}", "ledger.workers: cannot be changed while the gateway runs"},
	} {
		fileOf(t, dir, c.more)
		eventually(t, c.says, func() bool { return log.has(c.says) && refused() })
		s, _ := ops.setting(r, "ttl.receipt")
		require.Equal(t, "2h", s.Value, "nothing of it is in force")
		fileOf(t, dir, receipt2h)
		eventually(t, "no longer refused", func() bool { return !refused() })
	}
	require.NoError(t, os.Remove(path))
	eventually(t, "a file that is gone", refused)
	fileOf(t, dir, receipt3h)
	eventually(t, "the new value", func() bool { s, _ := ops.setting(r, "ttl.receipt"); return s.Value == "3h" && !refused() })
}

// What a file gives wins over what was changed over the API, from the moment it
// gives it until it does no more.
func TestAFileWinsOverTheAPI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := fileOf(t, dir, "")
	r := startLive(t, Live{Sources: &configs.Sources{File: path}}, t.Output())
	ops := newOperator(t)
	ops.change(r, "ttl.receipt", `"5h"`)
	is := func(value, origin string) {
		t.Helper()
		eventually(t, value+" of "+origin, func() bool {
			s, _ := ops.setting(r, "ttl.receipt")
			return s.Value == value && s.Origin == origin
		})
	}
	is("5h", "api")
	fileOf(t, dir, receipt2h)
	is("2h", "file "+path)
	require.Equal(t, http.StatusConflict, ops.put(r, "ttl.receipt", `"6h"`).status)
	fileOf(t, dir, "")
	is("5h", "api")
	// One that does not fit to what was changed is refused.
	fileOf(t, dir, "retention: {responses: 1h}")
	eventually(t, "refused", func() bool { return metric(t, r, `oncegate_config_refused{source="file"}`) == 1 })
	is("5h", "api")
}

func TestHangupReadsTheEnvironmentsFilesAgain(t *testing.T) {
	t.Parallel()
	hangup := make(chan os.Signal)
	log := &logged{}
	vars := []string{"ONCEGATE_DATA_DIR=" + t.TempDir(), "ONCEGATE_HTTP__LISTEN=127.0.0.1:0", "ONCEGATE_ADMIN__LISTEN=127.0.0.1:0"}
	startLive(t, Live{Sources: &configs.Sources{Environ: vars}, Hangup: hangup}, log)
	hangup <- syscall.SIGHUP
	eventually(t, "it was read again", func() bool { return log.has("the configuration was read again: nothing has changed") })
}

func TestTheLogFollowsItsLevel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := fileOf(t, dir, "log: {level: error}")
	log := &logged{}
	r := startLive(t, Live{Sources: &configs.Sources{File: path}}, log)
	ops := newOperator(t)
	ops.setting(r, "log.level")
	require.False(t, log.has("admin request"))
	fileOf(t, dir, "log: {level: debug}")
	eventually(t, "a line at debug", func() bool { ops.setting(r, "log.level"); return log.has("admin request") })
}

// The signal itself, to a gateway as a user starts it.
func TestServeReadsTheConfigurationAgainAtSIGHUP(t *testing.T) {
	t.Parallel()
	aloneWithHangup(t)
	dir := t.TempDir()
	path := fileOf(t, dir, receipt2h)
	log := &logged{}
	done := make(chan int, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		done <- run(ctx, environment{args: []string{"serve", "--config", path}, stdout: log, stderr: log})
	}()
	eventually(t, "it serves", func() bool { return log.has("curl -i") })
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	eventually(t, "it was read again", func() bool { return log.has("the configuration was read again: nothing has changed") })
	cancel()
	select {
	case code := <-done:
		require.Equal(t, exitOK, code)
	case <-time.After(soonEnough):
		t.Fatal("it does not stop")
	}
}
