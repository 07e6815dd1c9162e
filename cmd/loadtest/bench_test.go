//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/loadtest/bench"
)

// TestAgainstAGateway runs what needs the server's program, which is built once.
func TestAgainstAGateway(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "oncegate")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "github.com/oncegate/oncegate/cmd/gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	for name, scene := range map[string]func(t *testing.T, gateway string){
		"BenchMeasuresEveryPathOnRealServers":   measuresEveryPath,
		"BenchOfTwoBuildsHasAVerdict":           hasAVerdict,
		"BenchEndsWhatItStartedWhenInterrupted": endsWhatItStarted,
		"BenchTellsMemoryLatencyAndStorms":      tellsMemoryLatencyAndStorms,
		"BenchSeesRedisGoAndComeBack":           seesRedisGoAndComeBack,
		"MixedHoldsThroughAnOutage":             mixedThroughAnOutage,
		"CallbacksHaveOneEffect":                callbacksAgainstAGateway,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene(t, path)
		})
	}
}

// benchProgram is this program as a process of its own, since it starts itself
// for its baselines.
func benchProgram(gateway string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"bench", "--gateway", gateway}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// ran runs it to its end.
func ran(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	_ = cmd.Run() // the exit code tells
	demandServers(t, complaints.String())
	return cmd.ProcessState.ExitCode(), out.String(), complaints.String()
}

// ranLongEnough runs the bench with short turns, and with longer ones as long as
// the machine is too busy for them.
func ranLongEnough(t *testing.T, gateway string, seconds float64, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	for range 4 {
		code, stdout, stderr = ran(t, benchProgram(gateway, append(args, "--seconds", fmt.Sprint(seconds))...))
		if !tooBusy(stderr) {
			break
		}
		seconds *= 4
	}
	return code, stdout, stderr
}

// tooBusy tells that the bench ended for want of an answer in a turn, or because the
// gateway asked to come again: its database stood still for seconds.
func tooBusy(stderr string) bool {
	return strings.Contains(stderr, "nothing was answered") || strings.Contains(stderr, "status 503")
}

// demandServers ends a test as [testserver.Demand] says where the bench says that
// the machine has no server for it.
func demandServers(t *testing.T, stderr string) {
	t.Helper()
	if strings.Contains(stderr, testserver.ErrMissing.Error()) {
		testserver.Demand(t, fmt.Errorf("%w: %s", testserver.ErrMissing, stderr))
	}
}

func measuresEveryPath(t *testing.T, gateway string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "bench.json")
	code, stdout, stderr := ranLongEnough(t, gateway, 0.3,
		"--rounds", "1", "--connections", "4,16", "--records", "2000", "--json", file, "--profiles", dir)
	require.Equal(t, exitOK, code, stderr)
	for _, path := range []string{"new-http", "dup-redis", "dup-process"} {
		profile, err := os.ReadFile(filepath.Join(dir, path+".pprof"))
		require.NoError(t, err)
		require.Equal(t, "\x1f\x8b", string(profile[:2]), "pprof's form is compressed")
		top, err := os.ReadFile(filepath.Join(dir, path+".top.txt"))
		require.NoError(t, err)
		require.Contains(t, string(top), "| share", path)
	}
	report := reportIn(t, file)
	var measured []string
	for i := range report.Rows {
		row := &report.Rows[i]
		measured = append(measured, row.ID)
		require.Len(t, row.Ratios, 1, row.ID)
		require.Positive(t, row.Ratio, row.ID)
		require.Contains(t, stdout, row.Baseline.Name)
		if row.ID != "records" { // that one says how large an order is
			for _, told := range row.Notes { // what a busy machine makes of it
				require.Regexp(t, `REQUEST_IN_PROGRESS|answers came from the layer`, told, row.ID)
			}
		}
	}
	require.Equal(t, []string{
		"new-http", "new-http", "new-sql", "new-sql", "dup-redis", "dup-redis", "dup-process", "dup-process", "idle", "records",
	}, measured)
	require.Equal(t, "1", report.Environment.Settings["innodb_flush_log_at_trx_commit"])
	require.Equal(t, "1", report.Environment.Settings["sync_binlog"])
	require.Equal(t, "ON", report.Environment.Settings["log_bin"])
}

func reportIn(t *testing.T, file string) (report bench.Report) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &report))
	return report
}

func hasAVerdict(t *testing.T, gateway string) {
	t.Helper()
	code, stdout, stderr := ranLongEnough(t, gateway, 0.1, "--against", gateway, "--rounds", "3", "--connections", "8")
	require.Contains(t, []int{exitOK, exitSlower, exitUnclear}, code, stderr) // noise may have it either way
	require.Equal(t, 3, strings.Count(stdout, "| the other build"), stdout)
	require.Contains(t, stdout, " × ", stderr)
}

func endsWhatItStarted(t *testing.T, gateway string) {
	t.Helper()
	tmp := t.TempDir()
	var code int
	var stderr string
	for _, seconds := range []string{"0.3", "1.2", "4.8"} {
		code, stderr = interrupted(t, gateway, tmp, seconds)
		if !tooBusy(stderr) { // otherwise it has ended by itself, perhaps
			break
		}
	}
	require.Equal(t, exitInterrupted, code, stderr)
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// interrupted interrupts the bench after its first round.
func interrupted(t *testing.T, gateway, tmp, seconds string) (code int, stderr string) {
	t.Helper()
	cmd := benchProgram(gateway, "--rounds", "100", "--seconds", seconds, "--connections", "8", "--paths", "dup-process")
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp) // where the gateways keep their files
	progress, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var said bytes.Buffer
	for piece := make([]byte, 4096); !strings.Contains(said.String(), "round 1"); {
		n, err := progress.Read(piece)
		said.Write(piece[:n])
		if err != nil {
			break
		}
	}
	_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended, for want of servers
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(&said, progress)
		_ = cmd.Wait() // the exit code tells
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(5 * time.Minute):
		_ = cmd.Process.Kill()
		require.Fail(t, "it did not end")
	}
	demandServers(t, said.String())
	return cmd.ProcessState.ExitCode(), said.String()
}

func TestBenchUsageErrorsStartNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--rounds", "0"},
		{"--connections", "64,16"},
		{"--paths", "neu"},
		{"--keys", "0"},
		{"--buffer-pool", "1"},
		{"--buffer-pool", "4M"},
		{"--buffer-pool", "1.5G"},
		{"--open", "-1"},
		{"--clients", "1000000"},
		{"--gateway", "/nowhere/oncegate"},
		{"--against", "/nowhere/oncegate"},
		{"--against", "sh", "--rounds", "2"},
	} {
		self, err := os.Executable() // stands for a gateway: it is never run
		require.NoError(t, err)
		code, _, stderr := command(append([]string{"bench", "--gateway", self}, args...)...)
		require.Equal(t, exitUsage, code, stderr)
	}
}
