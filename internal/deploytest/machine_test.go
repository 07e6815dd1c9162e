//go:build linux && systemd

package deploytest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// patience is how long a busy machine may take for anything here.
const patience = 2 * time.Minute

// machine is a Debian whose first process is systemd, in namespaces of its own;
// it shares the network with this machine, to reach its servers.
type machine struct {
	t      *testing.T
	leader string // process ID of its systemd, as this machine sees it
	log    testserver.Output
}

// boot starts a machine with a suite of Debian that has the files besides its
// own, by path, until the test ends. What is written there is gone then.
func boot(t *testing.T, suite string, files map[string]string) *machine {
	t.Helper()
	require.NoError(t, testserver.InstallPackages(t.Context(), func() bool {
		_, err := exec.LookPath("systemd-nspawn")
		return err == nil
	}, "systemd-container"))
	debian, err := testserver.Debian(t.Context(), suite, "systemd")
	require.NoError(t, err)

	args := []string{
		"--directory=" + debian, "--volatile=overlay", "--machine=oncegate-test-" + suite, "--register=no", "--console=pipe", "--boot",
	}
	if _, err := os.Stat("/run/systemd/system"); errors.Is(err, fs.ErrNotExist) {
		args = append(args, "--keep-unit") // no systemd here that could give it a place
	}
	for path, source := range files {
		args = append(args, "--bind-ro="+source+":"+path)
	}
	// Everything that the unit asks for, and nothing that Debian adds.
	args = append(args, "systemd.unit=sysinit.target")
	group := newGroup(t)
	nspawn := exec.CommandContext(context.WithoutCancel(t.Context()), "systemd-nspawn", args...)
	m := &machine{t: t}
	nspawn.Stdout, nspawn.Stderr = &m.log, &m.log
	nspawn.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	nspawn.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, UseCgroupFD: true, CgroupFD: int(group.Fd())}
	ended := launch(t, nspawn)
	t.Cleanup(func() {
		_ = nspawn.Process.Signal(syscall.SIGTERM) // shuts the machine down
		select {
		case <-ended:
		case <-time.After(patience):
			_ = nspawn.Process.Kill()
			<-ended
			t.Error("the machine did not shut down")
		}
	})

	children := "/proc/" + strconv.Itoa(nspawn.Process.Pid) + "/task/" + strconv.Itoa(nspawn.Process.Pid) + "/children"
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(children)
		if pids := strings.Fields(string(text)); err == nil && len(pids) > 0 {
			m.leader = pids[len(pids)-1]
		}
		if m.leader == "" {
			return false
		}
		state, err := m.try("systemctl", "is-active", "sysinit.target")
		return err == nil && state == "active"
	}, patience, 100*time.Millisecond, "the machine does not boot\n%s", &m.log)
	return m
}

// launch starts a program that ends with this process, and says when it has
// ended. The kernel counts the end of the thread that started it for that of the
// process, so that thread waits for it.
func launch(t *testing.T, program *exec.Cmd) <-chan struct{} {
	t.Helper()
	started, over := make(chan error), make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := program.Start()
		started <- err
		if err == nil {
			_ = program.Wait() // how it ended is in its log
		}
	}()
	require.NoError(t, <-started)
	return over
}

// newGroup makes a control group for a machine, in which it makes more.
func newGroup(t *testing.T) *os.File {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	root := ""
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); slices.Contains(fields, "cgroup2") {
			root = fields[4]
		}
	}
	require.NotEmpty(t, root, "systemd needs control groups of version 2")
	own, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	_, path, ok := strings.Cut("\n"+string(own), "\n0::")
	require.True(t, ok)
	path, _, _ = strings.Cut(path, "\n")
	dir := filepath.Join(root, path, "oncegate-test-"+rand.Text())
	require.NoError(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return removeGroup(dir) == nil }, patience, 100*time.Millisecond, "a process is left")
	})
	group, err := os.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, group.Close()) })
	return group
}

// removeGroup removes a control group and those in it: directories that only
// look as if they had files.
func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeGroup(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(err, os.Remove(dir))
}

// try runs a program on the machine.
func (m *machine) try(program string, args ...string) (out string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.t.Context()), patience)
	defer cancel()
	inside := append([]string{"--target", m.leader, "--all", "--", program}, args...)
	b, err := exec.CommandContext(ctx, "nsenter", inside...).CombinedOutput()
	return strings.TrimSpace(string(b)), err
}

func (m *machine) run(program string, args ...string) string {
	m.t.Helper()
	out, err := m.try(program, args...)
	require.NoError(m.t, err, "%s %v\n%s\n%s", program, args, out, m.journal())
	return out
}

// journal is what the gateway's unit has logged.
func (m *machine) journal() string {
	out, _ := m.try("journalctl", "--unit=oncegate", "--no-pager", "--output=short-precise")
	return out
}

// property is what systemd knows of the unit.
func (m *machine) property(name string) string {
	m.t.Helper()
	return m.run("systemctl", "show", "--property="+name, "--value", "oncegate")
}
