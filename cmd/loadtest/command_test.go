package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/result"
	"github.com/oncegate/oncegate/loadtest/stub"
)

// asProgram makes the test binary behave as the program.
const asProgram = "LOADTEST_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func serve(t *testing.T, f stub.Flaws, delay time.Duration) string {
	t.Helper()
	s := stub.New(f)
	s.Delay = delay
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

func secret(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte("0123456789abcdef0123456789abcdef\n"), 0o600))
	return path
}

// command runs one command line.
func command(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = execute(args, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// short is a run of a second.
func short(t *testing.T, target, out string, more ...string) []string {
	t.Helper()
	return append([]string{
		"run", "--target", target, "--token-secret-file", secret(t), "--rate", "100/s", "--duration", "1s", "--arrivals", "even",
		"--scenario", "unique", "--timeout", "2s", "--settle", "0s", "--max-lag", "1m", "--users", "10", "--out", out,
		"--marks", filepath.Join(t.TempDir(), "marks"),
	}, more...)
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	good, bad := serve(t, stub.Flaws{}, 0), serve(t, stub.Flaws{Forget: 10}, 0)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, tc := range map[string]struct {
		target string
		more   []string
		want   int
	}{
		"passed":               {good, nil, exitOK},
		"invariant broken":     {bad, nil, exitBroken},
		"threshold broken":     {good, []string{"--threshold", "p99(created)<1us"}, exitThreshold},
		"not valid":            {good, []string{"--max-lag", "1ns"}, exitThreshold},
		"unknown threshold":    {good, []string{"--threshold", "p99(creatd)<1s"}, exitUsage},
		"unknown scenario":     {good, []string{"--scenario", "uniq"}, exitUsage},
		"unknown flag":         {good, []string{"--rat", "1"}, exitUsage},
		"closed with a ramp":   {good, []string{"--closed", "--ramp", "1s"}, exitUsage},
		"nothing repeats":      {good, []string{"--repeat-after", "1s"}, exitUsage},
		"unreachable":          {gone.URL, nil, exitUnreachable},
		"closed":               {good, []string{"--closed", "--concurrency", "4"}, exitOK},
		"audit without a base": {good, []string{"--audit", "sql"}, exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, err := command(short(t, tc.target, t.TempDir(), tc.more...)...)
			require.Equal(t, tc.want, code, out+err)
		})
	}
}

func TestARunWritesItsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, out, errText := command(short(t, serve(t, stub.Flaws{}, 0), dir, "--json", "--seed", "7", "--run", "abc")...)
	require.Equal(t, exitOK, code, errText)
	r, err := result.Parse([]byte(out))
	require.NoError(t, err)
	require.EqualValues(t, 100, r.Totals.Sent)
	require.EqualValues(t, 7, r.Plan.Seed)
	saved, err := result.Read(filepath.Join(dir, resultName))
	require.NoError(t, err)
	require.Equal(t, r.Started, saved.Started)
	page, err := os.ReadFile(filepath.Join(dir, reportName))
	require.NoError(t, err)
	require.Contains(t, string(page), "Passed")

	code, _, _ = command("report", dir, "-o", filepath.Join(dir, "again.html"))
	require.Equal(t, exitOK, code)
	require.FileExists(t, filepath.Join(dir, "again.html"))

	code, out, _ = command("compare", dir, dir, "--fail-if", "count(created)<-1%")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "p99(created)")
	code, _, errText = command("compare", dir, dir, "--fail-if", "p99(creatd)>+1%")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errText, "creatd")
	code, out, _ = command("compare", dir, dir, "--json", "--fail-if", "count(created)<+1%")
	require.Equal(t, exitThreshold, code)
	require.True(t, json.Valid([]byte(out)))
}

func TestMachinesAreMerged(t *testing.T) {
	t.Parallel()
	target := serve(t, stub.Flaws{}, 0)
	a, b, sum := t.TempDir(), t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		code, out, err := command(short(t, target, dir, "--quiet")...)
		require.Equal(t, exitOK, code, out+err)
		require.Empty(t, err, "quiet is quiet")
	}
	code, out, err := command("merge", a, b, "-o", sum, "--threshold", "count(created)==200")
	require.Equal(t, exitOK, code, out+err)
	code, _, _ = command("merge", a, b, "-o", sum, "--threshold", "count(created)==201")
	require.Equal(t, exitThreshold, code)
}

func TestMarksReachTheReport(t *testing.T) {
	t.Parallel()
	marks := filepath.Join(t.TempDir(), "marks")
	dir := t.TempDir()
	done := make(chan int)
	args := append(short(t, serve(t, stub.Flaws{}, 0), dir), "--marks", marks, "--duration", "2s")
	go func() {
		code, _, _ := command(args...)
		done <- code
	}()
	for code := -1; code < 0; {
		select {
		case code = <-done:
		case <-time.After(100 * time.Millisecond):
			marked, _, _ := command("mark", "--marks", marks, "redis", "down")
			require.Equal(t, exitOK, marked)
		}
	}
	r, err := result.Read(filepath.Join(dir, resultName))
	require.NoError(t, err)
	require.NotEmpty(t, r.Marks)
	require.Equal(t, "redis down", r.Marks[0].Text)
}

func TestScenariosAreListedAndShown(t *testing.T) {
	t.Parallel()
	code, out, _ := command("scenarios")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "double-click")
	code, out, _ = command("scenarios", "mixed")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "share: 74")
	code, _, _ = command("scenarios", "nothing")
	require.Equal(t, exitUsage, code)
}

// A machine that runs out of sockets must say so, and not blame the server.
func TestTheLimitsOfThisMachineAreItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := short(t, serve(t, stub.Flaws{}, 500*time.Millisecond), dir, "--rate", "200/s")
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `ulimit -n 60; exec "$0" "$@"`, os.Args[0]}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, string(out))
	require.Equal(t, exitThreshold, exit.ExitCode(), string(out))
	r, err := result.Read(filepath.Join(dir, resultName))
	require.NoError(t, err)
	require.Positive(t, r.Totals.ClientLimits)
	require.Contains(t, strings.Join(r.Valid.Reasons, " "), "limited by this machine")
	require.True(t, r.Verdict.Passed, r.Verdict.Findings.List)
}

// An interruption ends the run, not the report.
func TestAnInterruptionStillWritesTheReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], short(t, serve(t, stub.Flaws{}, 0), dir, "--duration", "1h")...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	progress, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = progress.Read(make([]byte, 1)) // the first line of progress: it is under way
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		b := make([]byte, 4096)
		for {
			if _, err := progress.Read(b); err != nil {
				return
			}
		}
	}()
	<-drained
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, exitInterrupted, exit.ExitCode())
	r, err := result.Read(filepath.Join(dir, resultName))
	require.NoError(t, err)
	require.True(t, r.Interrupted)
	require.FileExists(t, filepath.Join(dir, reportName))
}
