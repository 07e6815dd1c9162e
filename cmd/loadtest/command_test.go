package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	pace := []string{"run", "--rate", "100/s", "--arrivals", "even"}
	pace = append(pace, "--max-lag", "1m")
	if slices.Contains(more, "--closed") {
		pace = pace[:1]
	}
	return slices.Concat(pace, []string{
		"--target", target, "--token-secret-file", secret(t), "--duration", "1s",
		"--scenario", "unique", "--timeout", "30s", "--settle", "0s", "--users", "10", "--out", out,
		"--marks", filepath.Join(t.TempDir(), "marks"),
	}, more)
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	good := serve(t, stub.Flaws{}, 0)
	// Each run breaks its own server: of two in step, one could get every tenth answer.
	bad := func() string { return serve(t, stub.Flaws{Forget: 10}, 0) }
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(stranger.Close)
	empty := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(empty.Close)
	full := filepath.Join(t.TempDir(), "full") // there are no results in it any more
	require.NoError(t, os.Mkdir(full, 0o700))
	for _, name := range []string{resultName, reportName} {
		require.NoError(t, os.Mkdir(filepath.Join(full, name), 0o700))
	}
	for name, tc := range map[string]struct {
		target string
		more   []string
		want   int
	}{
		"passed":               {good, nil, exitOK},
		"invariant broken":     {bad(), nil, exitBroken},
		"threshold broken":     {good, []string{"--threshold", "p99(created)<1us"}, exitThreshold},
		"not valid":            {good, []string{"--max-lag", "1ns"}, exitThreshold},
		"unknown threshold":    {good, []string{"--threshold", "p99(creatd)<1s"}, exitUsage},
		"unknown scenario":     {good, []string{"--scenario", "uniq"}, exitUsage},
		"unknown flag":         {good, []string{"--rat", "1"}, exitUsage},
		"closed with a ramp":   {good, []string{"--closed", "--ramp", "1s"}, exitUsage},
		"nothing repeats":      {good, []string{"--repeat-after", "1s"}, exitUsage},
		"unreachable":          {"http://127.0.0.1:1", nil, exitUnreachable}, // the kernel gives nobody this port
		"refused tokens":       {stranger.URL, nil, exitUsage},
		"closed":               {good, []string{"--closed", "--concurrency", "4"}, exitOK},
		"audit without a base": {good, []string{"--audit", "sql"}, exitUsage},
		"audit of no DSN":      {good, []string{"--audit-dsn", "nothing"}, exitUsage},
		"audit of no base":     {good, []string{"--audit-dsn", "sqlite:/nowhere/oncegate.db"}, exitUsage},
		"no orders here":       {empty.URL, nil, exitUsage},
		"passed and untold":    {good, []string{"--out", full}, exitUntold},
		"broken and untold":    {bad(), []string{"--out", full}, exitBroken},
		"closed with a lag":    {good, []string{"--closed", "--max-lag", "1s"}, exitUsage},
		"nobody to pay":        {good, []string{"--balance", "5.00"}, exitUsage},
		"nobody to create":     {good, []string{"--admin-url", good}, exitUsage},
		"signed twice":         {good, []string{"--token-key-file", "key.pem"}, exitUsage},
		"nobody reads it":      {good, []string{"--audit", "http", "--audit-dsn", "sqlite:/nowhere/oncegate.db"}, exitUsage},
		"closed with a rate":   {good, []string{"--closed", "--rate", "5/s"}, exitUsage},
		"open with clients":    {good, []string{"--concurrency", "5"}, exitUsage},
		"a rate for ever":      {good, []string{"--rate", "1000000000/s"}, exitUsage},
		"fewer than no users":  {good, []string{"--users", "-5"}, exitUsage},
		"too many users":       {good, []string{"--users", "5000000"}, exitUsage},
		"too many copies":      {good, []string{"--scenario", "storm", "--copies", "200000"}, exitUsage},
		"no copies":            {good, []string{"--scenario", "storm", "--copies", "0"}, exitUsage},
		"a repeat next week":   {good, []string{"--scenario", "retry-after-ttl", "--repeat-after", "168h"}, exitUsage},
		"a pause before now":   {good, []string{"--settle", "-1s"}, exitUsage},
		"a lag below zero":     {good, []string{"--max-lag", "-1s"}, exitUsage},
		"no amount":            {good, []string{"--balance", ""}, exitUsage},
		"half an amount":       {good, []string{"--balance", "1."}, exitUsage},
		"an amount with signs": {good, []string{"--balance", "+5"}, exitUsage},
		"no URL":               {"127.0.0.1:8080", nil, exitUsage},
		"a target with a user": {strings.Replace(good, "http://", "http://me:pw@", 1), nil, exitUsage},
		"a target and a query": {good + "/?a=b", nil, exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "results")
			code, out, err := command(short(t, tc.target, filepath.Join(dir, "run"), tc.more...)...)
			require.Equal(t, tc.want, code, out+err)
			switch {
			case slices.Contains(tc.more, full):
				require.Contains(t, err, "VERDICT", "it is said all the same")
			case code == exitUsage || code == exitUnreachable:
				require.NoDirExists(t, dir, "there is no result")
			default:
				require.FileExists(t, filepath.Join(dir, "run", reportName))
			}
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

	dotted := filepath.Join(dir, "v1.2")
	require.NoError(t, os.Mkdir(dotted, 0o700))
	require.NoError(t, os.Rename(filepath.Join(dir, resultName), filepath.Join(dotted, resultName)))
	code, _, _ = command("report", dotted+"/")
	require.Equal(t, exitOK, code)
	require.FileExists(t, filepath.Join(dotted, reportName))
	require.NoError(t, os.Rename(filepath.Join(dotted, resultName), filepath.Join(dir, resultName)))

	code, _, errText = command("compare", dir+",", dir)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errText, "an empty path")
	code, out, _ = command("compare", dir, dir, "--fail-if", "count(created)<-1%")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "p99(created)")
	code, _, errText = command("compare", dir, dir, "--fail-if", "p99(creatd)>+1%")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errText, "creatd")
	r.Valid = result.Validity{Reasons: []string{"the load generator was late"}}
	r.Plan.Rate = 5
	late := filepath.Join(dir, "late.json")
	require.NoError(t, create(late, r.Write))
	code, out, _ = command("compare", dir, late)
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "BEWARE: run abc is not valid: the load generator was late")
	require.Contains(t, out, "had the rate 100, run abc had 5")
	code, _, _ = command("compare", dir, late, "--fail-if", "count(created)<-1%")
	require.Equal(t, exitThreshold, code, "such numbers hold no bound")
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
	code, out, _ := command("merge", a, b, "-o", sum)
	require.Equal(t, exitThreshold, code)
	require.Contains(t, out, "not going on at the same time")
	atOnce(t, a, b)
	code, out, err := command("merge", a, b, "-o", sum, "--threshold", "count(created)==200")
	require.Equal(t, exitOK, code, out+err)
	code, _, _ = command("merge", a, b, "-o", sum, "--threshold", "count(created)==201")
	require.Equal(t, exitThreshold, code)
}

// atOnce makes results those of runs that began at the same instant.
func atOnce(t *testing.T, dirs ...string) {
	t.Helper()
	start := time.Now()
	for _, dir := range dirs {
		path := filepath.Join(dir, resultName)
		r, err := result.Read(path)
		require.NoError(t, err)
		r.Started, r.Finished = start, start.Add(r.Finished.Sub(r.Started))
		require.NoError(t, create(path, r.Write))
	}
}

// Who presses ctrl+c while the run is being prepared has not met a target that is
// away.
func TestAnInterruptionBeforeTheFirstOrder(t *testing.T) {
	t.Parallel()
	asked, pressed := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/admin/") {
			select {
			case asked <- struct{}{}:
			default:
			}
			<-pressed
			_, _ = w.Write([]byte("{}"))
		}
	}))
	t.Cleanup(server.Close)
	dir := filepath.Join(t.TempDir(), "results")
	cmd := exec.CommandContext(t.Context(), os.Args[0], short(t, server.URL, dir, "--create-users", "--admin-url", server.URL, "--users", "20000")...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var said bytes.Buffer
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	select {
	case <-asked:
	case <-time.After(time.Minute): // it has ended, and said why
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	close(pressed) // there are thousands to come: it is heard before the last
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, exitInterrupted, exit.ExitCode(), said.String())
	require.Contains(t, said.String(), "before the first order")
	require.NoDirExists(t, dir)
}

func TestMarksReachTheReport(t *testing.T) {
	t.Parallel()
	marks := filepath.Join(t.TempDir(), "marks")
	dir := t.TempDir()
	target := stub.New(stub.Flaws{})
	marked := make(chan int, 1)
	mark := sync.OnceFunc(func() {
		code, _, _ := command("mark", "--marks", marks, "redis", "down")
		marked <- code
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			mark() // the first order is under way, and so is the run
		}
		target.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	code, out, errText := command(append(short(t, server.URL, dir), "--marks", marks)...)
	require.Equal(t, exitOK, code, out+errText)
	require.Equal(t, exitOK, <-marked)
	r, err := result.Read(filepath.Join(dir, resultName))
	require.NoError(t, err)
	require.Len(t, r.Marks, 1)
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
