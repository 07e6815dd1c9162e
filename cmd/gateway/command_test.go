package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// command runs a command line with variables.
func command(t *testing.T, vars []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), environment{args: args, vars: vars, stdout: &out, stderr: &errs})
	return code, out.String(), errs.String()
}

func TestExitCodesTellAWrongCommandLineFromAFailure(t *testing.T) {
	t.Parallel()
	in := []string{"ONCEGATE_DATA_DIR=" + t.TempDir()}
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"version"}, exitOK},
		{[]string{"--help"}, exitOK},
		{[]string{"serve", "--help"}, exitOK},
		{[]string{"nonsense"}, exitUsage},
		{[]string{"serve", "extra"}, exitUsage},
		{[]string{"serve", "--nonsense"}, exitUsage},
		{[]string{"migrate"}, exitUsage},
		{[]string{"migrate", "down"}, exitUsage},
		{[]string{"token"}, exitUsage},
		{[]string{"config", "check"}, exitUsage},
		{[]string{"key", "inspect", "alice"}, exitUsage},
		{[]string{"config", "check", "/nonexistent.yaml"}, exitFailed},
		{[]string{"serve", "--ledger.max_batch=0"}, exitFailed},
		{[]string{"healthcheck", "--http.listen=127.0.0.1:1"}, exitFailed},
		{[]string{"token", "--user", "alice", "--ttl", "-1s"}, exitUsage},
		{[]string{"token", "--user", "alice", "--ttl", "1w"}, exitUsage},
		{[]string{"token", "--user", ""}, exitUsage},
		{[]string{"compact", "--batch", "0"}, exitUsage},
		{[]string{"compact", "--pause", "-1s"}, exitUsage},
		{[]string{"audit", "--chunk", "0"}, exitUsage},
		{[]string{"audit", "--max-findings", "-1"}, exitUsage}, // it would list none, and call that clean
		{[]string{"token", "--user", "alice", "--scope", "root"}, exitUsage},
		{[]string{"token", "--user", "alice", "--scope", ""}, exitUsage},
		{[]string{"token", "--user", "alice", "--scope", "admin.read,write"}, exitUsage},
		{[]string{"help"}, exitOK},
		{[]string{"help", "migrate", "up"}, exitOK},
		{[]string{"help", "bogus"}, exitUsage},
		{[]string{"help", "migrate", "bogus"}, exitUsage},
		{[]string{"config", "print", "--running", "--markdown"}, exitUsage},
	} {
		code, _, stderr := command(t, in, c.args...)
		require.Equal(t, c.code, code, "%v: %s", c.args, stderr)
		require.Equal(t, code == exitOK, stderr == "", "%v: %s", c.args, stderr)
	}
}

func TestATokenIsAloneOnStdoutAndBelieved(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	code, stdout, stderr := command(t, []string{"ONCEGATE_DATA_DIR=" + cfg.DataDir}, "token", "--user", "alice")
	require.Equal(t, exitOK, code, stderr)
	require.Empty(t, stderr)
	require.Regexp(t, `^[\w-]+\.[\w-]+\.[\w-]+\n$`, stdout)
	alice := &customer{t: t, http: newCustomer(t, cfg, "x").http, bearer: "Bearer " + strings.TrimSpace(stdout)}
	require.Equal(t, http.StatusCreated, alice.post(r, "k", potsticker).status)
}

func TestAKeyCanBeInspectedAndTheHealthAsked(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	alice := newCustomer(t, cfg, "alice")
	require.Equal(t, http.StatusCreated, alice.post(r, "a/b?c", potsticker).status)
	vars := []string{"ONCEGATE_HTTP__LISTEN=" + r.Addr(), "ONCEGATE_ADMIN__LISTEN=" + r.AdminAddr()}

	code, stdout, stderr := command(t, vars, "key", "inspect", "alice", "a/b?c")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, `"layer":"mysql"`)
	require.Contains(t, stdout, `"state":"succeeded"`)

	eventually(t, "it is never well", func() bool { // see isWell
		code, stdout, _ := command(t, vars, "healthcheck")
		return code == exitOK && strings.Contains(stdout, `"status":"ok"`)
	})
}

func TestAPortThatIsFoundAtTheStartCannotBeAsked(t *testing.T) {
	t.Parallel()
	vars := []string{"ONCEGATE_HTTP__LISTEN=127.0.0.1:0", "ONCEGATE_ADMIN__LISTEN=[::1]:0"}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"healthcheck"}, "http.listen (127.0.0.1:0) takes a port that only the running gateway knows: its log says which; name it with --http.listen=127.0.0.1:PORT\n"},
		{[]string{"key", "inspect", "alice", "k"}, "admin.listen ([::1]:0) takes a port that only the running gateway knows: its log says which; name it with --admin.listen=[::1]:PORT\n"},
		{[]string{"config", "print", "--running"}, "admin.listen ([::1]:0) takes a port"},
		{[]string{"ttl", "advise"}, "admin.listen ([::1]:0) takes a port"},
	} {
		code, stdout, stderr := command(t, vars, c.args...)
		require.Equal(t, exitFailed, code, c.args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.says)
	}
}

func TestTheAdminListenerCanDemandAToken(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef0123456789abcdef"
	cfg := embedded(t.TempDir())
	cfg.Admin.AllowLoopback = false
	r := start(t, cfg)
	vars := []string{"ONCEGATE_ADMIN__LISTEN=" + r.AdminAddr()}
	for _, args := range [][]string{{"key", "inspect", "alice", "k"}, {"config", "print", "--running"}, {"ttl", "advise"}} {
		code, stdout, stderr := command(t, vars, args...)
		require.Equal(t, exitFailed, code)
		require.Empty(t, stdout, args)
		require.Contains(t, stderr, "the gateway answered 401 Unauthorized: Send a valid bearer token.", args)
	}

	code, _, stderr := command(t, append(vars, "ONCEGATE_AUTH__HS256_SECRET="+secret), "key", "inspect", "alice", "k")
	require.Equal(t, exitFailed, code, "a token of another secret: %s", stderr)

	own, err := signingSecret(&cfg)
	require.NoError(t, err)
	code, stdout, stderr := command(t, append(vars, "ONCEGATE_AUTH__HS256_SECRET="+string(own)), "key", "inspect", "alice", "k")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, `"layers":[]`)
}

func TestMigrationsAreListedAndApplied(t *testing.T) {
	t.Parallel()
	vars := []string{"ONCEGATE_DATA_DIR=" + filepath.Join(t.TempDir(), "new")}
	code, stdout, stderr := command(t, vars, "migrate", "up")
	require.Equal(t, exitOK, code, stderr)
	require.Empty(t, stdout)

	code, stdout, stderr = command(t, vars, "migrate", "status")
	require.Equal(t, exitOK, code, stderr)
	require.NotContains(t, stdout, "missing")
}

func TestWhatReadsMakesNoDatabase(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"migrate", "status"}, exitFailed},
		{[]string{"audit"}, exitCouldNotLook},
		{[]string{"compact"}, exitFailed},
	} {
		code, stdout, stderr := command(t, []string{"ONCEGATE_DATA_DIR=" + dir}, c.args...)
		require.Equal(t, c.code, code, "%v: %s", c.args, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "there is no database at "+filepath.Join(dir, "oncegate.db"))
		require.NoDirExists(t, dir)
	}
}

func TestWhatOnlyNeedsTheDatabaseNeedsNoSigningSecret(t *testing.T) {
	t.Parallel()
	vars := []string{"ONCEGATE_MYSQL__DSN=u:p@tcp(127.0.0.1:1)/shop", "ONCEGATE_MYSQL__START_TIMEOUT=1ms"}
	vars = append(vars, "ONCEGATE_REDIS__ADDRS=127.0.0.1:1", "ONCEGATE_MESSAGES__BROKER=redis", "ONCEGATE_MESSAGES__ADDRS=127.0.0.1:1")
	for _, args := range [][]string{{"migrate", "status"}, {"migrate", "up"}, {"audit"}, {"compact"}, {"consume"}, {"consume", "--admin.listen="}} {
		code, _, stderr := command(t, vars, args...)
		require.NotEqual(t, exitOK, code)
		require.NotContains(t, stderr, "auth.", args)
		require.NotContains(t, stderr, "configuration", args)
		require.Contains(t, stderr, "database", "%v gets as far as that", args)
	}
	_, _, stderr := command(t, vars, "serve")
	require.Contains(t, stderr, "auth.hs256_secret or auth.jwks_url is required")
	require.Contains(t, stderr, "cache.mac_key is required")
	_, _, stderr = command(t, nil, "serve", "--admin.listen=")
	require.Contains(t, stderr, "admin.listen is required")
}

func TestANewSigningSecretIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"token", "--user", "alice", "--data_dir", dir}
	code, _, stderr := command(t, nil, args...)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stderr, "made a new signing secret, "+filepath.Join(dir, "secrets", "hs256"))

	code, _, stderr = command(t, nil, args...)
	require.Equal(t, exitOK, code)
	require.Empty(t, stderr, "it is there already")
}

func TestOneIsNotMany(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0 users", count(0, "user"))
	require.Equal(t, "1 user", count(1, "user"))
	require.Equal(t, "2 users", count(2, "user"))
}

func TestTheConfigurationIsCheckedAndPrinted(t *testing.T) {
	t.Parallel()
	code, _, stderr := command(t, nil, "config", "check", "../../configs/embedded.yaml")
	require.Equal(t, exitOK, code, stderr)

	code, _, stderr = command(t, nil, "config", "check", "../../configs/production.yaml")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "cache.mac_key is required")

	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("request_budget: 5s\n"), 0o600))
	vars := []string{"ONCEGATE_CONFIG=" + path, "ONCEGATE_REDIS__PASSWORD=hunter2"}
	code, stdout, stderr := command(t, vars, "config", "print", "--origin", "--max_wait=1s")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "request_budget: 5s  # file "+path)
	require.Contains(t, stdout, "max_wait: 1s  # flag --max_wait")
	require.NotContains(t, stdout, "hunter2")

	code, stdout, _ = command(t, nil, "config", "print", "--markdown")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "| `mysql.dsn` | `ONCEGATE_MYSQL__DSN`, `…_FILE` |")
}

// lines is a writer that hands on what was written as a whole.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	seen chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	had := strings.Contains(l.text.String(), "curl ")
	l.text.Write(b)
	if !had && strings.Contains(l.text.String(), "curl ") {
		close(l.seen)
	}
	return len(b), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestServePrintsACommandThatMakesAnOrder(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stdout bytes.Buffer
	stderr := &lines{seen: make(chan struct{})}
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, environment{
			args:   []string{"serve", "--http.listen=127.0.0.1:0", "--admin.listen=127.0.0.1:0", "--data_dir=" + t.TempDir()},
			stdout: &stdout, stderr: stderr,
		})
	}()
	select {
	case <-stderr.seen:
	case code := <-done:
		t.Fatalf("serve ended with %d: %s", code, stderr)
	}
	line := stderr.String()[strings.Index(stderr.String(), "curl "):]
	url := line[strings.Index(line, "http://"):]
	url = url[:strings.IndexByte(url, ' ')]
	bearer := line[strings.Index(line, "Bearer "):]
	bearer = bearer[:strings.IndexByte(bearer, '\'')]
	body := line[strings.IndexByte(line, '{') : strings.IndexByte(line, '}')+1]
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := &customer{t: t, http: &http.Client{Transport: transport}, bearer: bearer}
	a := c.do(http.MethodPost, url, "first-order", body)
	require.Equal(t, http.StatusCreated, a.status, a.body)

	cancel()
	require.Equal(t, exitOK, <-done, stderr)
	require.Empty(t, stdout.String())
}
