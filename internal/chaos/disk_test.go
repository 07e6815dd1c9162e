//go:build linux

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// slowDisk has the database wait 200 ms for each flush to its disk.
func (w *world) slowDisk() (end func()) {
	pid, err := w.databaseProcess()
	if err != nil {
		return w.none("slow disk", err)
	}
	end, err = meddle(w.t.Context(), pid, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_enter=200000")
	if err != nil {
		return w.none("slow disk", err)
	}
	return end
}

// failingDisk has flushes of the database fail with EIO, all of them or one of
// each thread. A server that believes in its disk ends itself; whatever it did, it
// is then started again.
func (w *world) failingDisk(e event) (end func()) {
	when := []string{"1+", "2", "5"}[e.random%3]
	pid, err := w.databaseProcess()
	if err != nil {
		return w.none("failing disk", err)
	}
	letGo, err := meddle(w.t.Context(), pid, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO:when="+when)
	if err != nil {
		return w.none("failing disk", err)
	}
	return func() {
		itself := gone(pid)
		letGo() // a server that is traced does not end
		w.t.Logf("flushes failed (%s); the server ended itself: %v", when, itself)
		w.database.Kill()
		w.database.Restart()
	}
}

// gone reports whether a process has ended, or is being held at its end.
func gone(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || bytes.Contains(status, []byte("State:\tZ"))
}

// fullLogDisk has every write to the binary log fail as on a full disk.
func (w *world) fullLogDisk() (end func(), err error) {
	pid, err := w.databaseProcess()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if path, err := os.Readlink(f); err == nil && strings.Contains(path, "/binlog.0") {
			return meddle(w.t.Context(), pid, "-P", path, "-e", "trace=write,pwrite64", "-e", "inject=write,pwrite64:error=ENOSPC")
		}
	}
	return nil, errors.New("the database has no binary log open")
}

// meddle has strace come between a process and the kernel. It holds the process
// when meddle returns, until it is told to end.
func meddle(ctx context.Context, pid int, how ...string) (end func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var strace string
	err = testserver.InstallPackages(ctx, func() bool {
		var err error
		strace, err = exec.LookPath("strace")
		return err == nil
	}, "strace")
	if err != nil {
		return nil, fmt.Errorf("strace: %w: %w", testserver.ErrForbidden, err)
	}
	var complaint testserver.Output
	cmd := exec.Command(strace, append([]string{"-f", "-qq", "-o", "/dev/null", "-p", strconv.Itoa(pid)}, how...)...)
	cmd.Stderr = &complaint
	over, err := startBound(cmd)
	if err != nil {
		return nil, fmt.Errorf("strace: %w", err)
	}
	end = func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // it lets go of the process
		select {
		case <-over:
		case <-time.After(2 * time.Second): // a thread that is ending never stops for it
			_ = cmd.Process.Kill()
			<-over
		}
	}
	held := fmt.Appendf(nil, "TracerPid:\t%d\n", cmd.Process.Pid)
	for tick := every(ctx, 2*time.Millisecond); tick(); {
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil && bytes.Contains(status, held) {
			return end, nil
		}
		select {
		case <-over:
			if gone(pid) { // it did not survive what strace did to it
				return end, nil
			}
			return nil, fmt.Errorf("strace: %w: %s", testserver.ErrForbidden, complaint.Tail(3))
		default:
		}
	}
	end()
	return nil, fmt.Errorf("strace does not take hold of process %d: %w", pid, ctx.Err())
}

// databaseProcess finds the server by its port on the command line.
func (w *world) databaseProcess() (pid int, err error) {
	_, port, err := net.SplitHostPort(w.database.Addr)
	if err != nil {
		return 0, err
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append(line, 0), []byte("--port="+port+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("%s as a process: %w", w.engine, testserver.ErrMissing) // it is in a container
}

func TestStraceHoldsAProcessOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	sleeper := exec.Command("sleep", "infinity")
	over, err := startBound(sleeper)
	require.NoError(t, err)
	pid := sleeper.Process.Pid
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		<-over
	})
	letGo, err := meddle(t.Context(), pid, "-e", "trace=fsync")
	testserver.Demand(t, err)
	_, err = meddle(t.Context(), pid, "-e", "trace=fsync")
	require.ErrorIs(t, err, testserver.ErrForbidden, "a process has one tracer at most")
	require.ErrorContains(t, err, "ptrace")
	letGo()
	letGo, err = meddle(t.Context(), pid, "-e", "trace=fsync")
	require.NoError(t, err, "it was let go")
	letGo()
}

func TestADatabaseElsewhereIsNoProcess(t *testing.T) {
	t.Parallel()
	w := &world{t: t, database: &testserver.SQLServer{}}
	w.database.Addr = reserved(t) // where nobody listens
	_, err := w.databaseProcess()
	require.ErrorIs(t, err, testserver.ErrMissing)
}

func TestAFaultThatDidNotBeginDoesNotCount(t *testing.T) {
	t.Parallel()
	ended := 0
	w := &world{t: t}
	some := fault{"some", inRedis, func(*world, event) func() { return func() { ended++ } }}
	none := fault{"none", inDatabase, func(*world, event) func() { return nil }}
	injected := map[string]int{}
	require.Equal(t, 1, w.suffer(t.Context(), step{events: []event{{fault: &none}, {fault: &some}}}, injected))
	require.Equal(t, map[string]int{"some": 1}, injected)
	require.Equal(t, 1, ended)
}
