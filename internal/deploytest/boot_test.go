//go:build linux && systemd

package deploytest_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/loopback"
	"github.com/oncegate/oncegate/internal/testserver"
)

// site is a machine that the unit was put on as its first lines say, with a
// database and a Redis beside it.
type site struct {
	*machine
	settings string // path of the configuration file, on this machine
	text     string // its content
	api      string
	token    string
}

func newSite(t *testing.T, suite string) *site {
	t.Helper()
	etc, program := filepath.Join(t.TempDir(), "etc"), filepath.Join(t.TempDir(), "oncegate")
	secret := func(name string) string { return filepath.Join(etc, "secrets", name) }
	require.NoError(t, os.MkdirAll(secret(""), 0o700))
	require.NoError(t, os.Chmod(etc, 0o755))
	for name, content := range map[string]string{
		"mysql_dsn": testserver.MySQL(t).Database(t), "mac_key": secrets["mac_key"], "hs256_secret": strings.Repeat("s", 64),
	} {
		require.NoError(t, os.WriteFile(secret(name), []byte(content), 0o400))
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/oncegate/oncegate/cmd/gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	oncegate := func(args ...string) string {
		command := exec.CommandContext(t.Context(), program, args...)
		command.Dir = t.TempDir()
		command.Env = append(os.Environ(), "ONCEGATE_MYSQL__DSN_FILE="+secret("mysql_dsn"), "ONCEGATE_AUTH__HS256_SECRET_FILE="+secret("hs256_secret"))
		out, err := command.Output()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	oncegate("migrate", "up")

	s := &site{settings: filepath.Join(etc, "oncegate.yaml"), token: oncegate("token", "--user", "ann", "--scope", "orders")}
	addresses := make([]string, 2)
	for i := range addresses {
		port, err := loopback.Reserve()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, port.Release()) })
		addresses[i] = port.Addr()
	}
	s.api = "http://" + addresses[0]
	s.text = "http: {listen: '" + addresses[0] + "'}\nadmin: {listen: '" + addresses[1] + "'}\n" +
		"redis: {addrs: ['" + testserver.Redis(t).Addr + "']}\nusers: {provision_balance: '1000.00'}\nttl: {receipt: 24h}\n"
	require.NoError(t, os.WriteFile(s.settings, []byte(s.text), 0o644))

	text, _ := unit(t)
	_, dropIn, ok := strings.Cut(text, "oncegate\") with\n") // what the unit tells people to add for such a secret
	require.True(t, ok)
	dropIn, _, _ = strings.Cut(dropIn, "\n# Then")
	added := filepath.Join(t.TempDir(), "secret.conf")
	require.NoError(t, os.WriteFile(added, []byte(strings.NewReplacer("#     ", "").Replace(dropIn)), 0o600))
	service, err := filepath.Abs(filepath.Join(root, "deploy/systemd/oncegate.service"))
	require.NoError(t, err)
	files := map[string]string{"/etc/oncegate": etc, "/usr/bin/oncegate": program}
	files["/usr/lib/systemd/system/oncegate.service"] = service
	files["/etc/systemd/system/oncegate.service.d/secret.conf"] = added
	s.machine = boot(t, suite, files)
	return s
}

// ask sends a request to the gateway.
func (s *site) ask(method, path, body string) (status int, answer string, err error) {
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.api+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "the-first")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(bytes.TrimSpace(b)), err
}

func (s *site) order() string {
	s.t.Helper()
	status, answer, err := s.ask(http.MethodPost, "/api/orders", `{"sku":"tea","quantity":1,"amount":"3.50"}`)
	require.NoError(s.t, err, s.journal())
	require.Equal(s.t, http.StatusCreated, status, answer)
	return answer
}

// A machine is booted with the unit on it, and the unit's life is followed: it
// is ready when it takes orders, it keeps what it may do to itself, it reads its
// settings again, it is started anew when it hangs, and it stops in time.
func TestTheUnitOnAMachine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		suite  string
		reload []string // asks for the settings to be read again
		warns  bool     // of a line that is too new for it
	}{
		"Systemd257": {suite: "trixie", reload: []string{"reload", "oncegate"}},
		"Systemd252": {suite: "bookworm", reload: []string{"kill", "-s", "HUP", "--kill-who=main", "oncegate"}, warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c.suite)
			s.run("systemctl", "start", "oncegate") // returns when the gateway says that it is ready
			require.Equal(t, "active", s.property("ActiveState"))
			require.Equal(t, "taking orders", s.property("StatusText"))
			first := s.order()
			s.isHardened()
			s.reads("36h", c.reload)
			s.survivesHanging()
			require.Equal(t, first, s.order(), "the retry gets the first answer")
			s.run("systemctl", "stop", "oncegate")
			require.Equal(t, "inactive", s.property("ActiveState"))
			require.Equal(t, "success", s.property("Result"), "it had to be killed")
			require.Equal(t, "0", s.property("ExecMainStatus"))

			warned := strings.Count(s.journal(), "/oncegate.service:")
			require.Equal(t, c.warns, warned > 0, s.journal())
		})
	}
}

// isHardened checks that the process has what it needs and no more.
func (s *site) isHardened() {
	s.t.Helper()
	pid := s.property("MainPID")
	status := s.run("cat", "/proc/"+pid+"/status")
	for _, line := range []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		require.Contains(s.t, status, line)
	}
	require.NotRegexp(s.t, `(?m)^Uid:\t0\t`, status, "it runs as root")
	require.Equal(s.t, "hs256_secret\nmac_key\nmysql_dsn", s.run("ls", "/run/credentials/oncegate.service"))
	require.NotContains(s.t, s.run("cat", "/proc/"+pid+"/environ"), secrets["mac_key"])
	out, err := s.try("nsenter", "--target", pid, "--mount", "--", "touch", "/usr/of-no-use")
	require.Error(s.t, err)
	require.Contains(s.t, out, "Read-only file system")
}

// reads changes a setting in the file and has it read again.
func (s *site) reads(receipt string, reload []string) {
	s.t.Helper()
	pid := s.property("MainPID")
	d, err := time.ParseDuration(receipt)
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(s.settings, []byte(strings.Replace(s.text, "24h", receipt, 1)), 0o644))
	s.run("systemctl", reload...)
	require.Eventually(s.t, func() bool {
		_, policy, err := s.ask(http.MethodGet, "/api/policy", "")
		return err == nil && strings.Contains(policy, `"fast_window_seconds":`+strconv.Itoa(int(d.Seconds())))
	}, patience, 100*time.Millisecond, "the settings are not read again")
	require.Equal(s.t, pid, s.property("MainPID"), "a reload is no restart")
}

// survivesHanging freezes the gateway until systemd starts another.
func (s *site) survivesHanging() {
	s.t.Helper()
	pid := s.property("MainPID")
	s.run("systemctl", "kill", "-s", "STOP", "--kill-who=main", "oncegate")
	require.Eventually(s.t, func() bool { return s.property("NRestarts") == "1" }, patience, 500*time.Millisecond, "nobody noticed that it hangs")
	require.Eventually(s.t, func() bool { return s.property("ActiveState") == "active" }, patience, 500*time.Millisecond, "it does not come back")
	require.Contains(s.t, s.journal(), "Watchdog timeout")
	require.NotEqual(s.t, pid, s.property("MainPID"))
}
