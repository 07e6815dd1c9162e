//go:build linux

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/oncegate/oncegate/internal/testserver"
)

// slowDisk has the database wait 200 ms for each flush to its disk. Without
// strace, or the right to use it, the disk is as fast as before.
func (w *world) slowDisk() (end func()) {
	end, _ = w.meddle("-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_enter=200000")
	return end
}

// failingDisk has flushes of the database fail with EIO, all of them or one of
// each thread. A server that believes in its disk ends itself; whatever it did, it
// is then started again. Without strace it is only killed.
func (w *world) failingDisk(e event) (end func()) {
	when := []string{"1+", "2", "5"}[e.random%3]
	pid := w.databaseProcess()
	letGo, _ := w.meddle("-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO:when="+when)
	return func() {
		gone := ended(pid)
		letGo() // a server that is traced does not end
		w.t.Logf("flushes failed (%s); the server ended itself: %v", when, gone)
		w.database.Kill()
		w.database.Restart()
	}
}

// ended reports whether a process has ended, or is being held at its end.
func ended(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || bytes.Contains(status, []byte("State:\tZ"))
}

// fullLogDisk has every write to the binary log fail as on a full disk.
func (w *world) fullLogDisk() (end func(), ok bool) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", w.databaseProcess()))
	if err != nil {
		return func() {}, false
	}
	for _, f := range files {
		if path, err := os.Readlink(f); err == nil && strings.Contains(path, "/binlog.0") {
			return w.meddle("-P", path, "-e", "trace=write,pwrite64", "-e", "inject=write,pwrite64:error=ENOSPC")
		}
	}
	return func() {}, false
}

// meddle has strace come between the database and the kernel; false when it
// cannot.
func (w *world) meddle(how ...string) (end func(), ok bool) {
	pid := w.databaseProcess()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	var strace string
	err := testserver.InstallPackages(ctx, func() bool {
		var err error
		strace, err = exec.LookPath("strace")
		return err == nil
	}, "strace")
	if err != nil && os.Getenv("CI") == "true" {
		w.t.Errorf("no strace, so this fault is none: %v", err)
	}
	if pid == 0 || err != nil {
		return func() {}, false
	}
	cmd := exec.Command(strace, append([]string{"-f", "-qq", "-o", "/dev/null", "-p", strconv.Itoa(pid)}, how...)...)
	ended, err := startBound(cmd)
	if err != nil {
		return func() {}, false
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // it lets go of the process
		select {
		case <-ended:
		case <-time.After(2 * time.Second): // a thread that is ending never stops for it
			_ = cmd.Process.Kill()
			<-ended
		}
	}, true
}

// traced reports whether strace has taken hold of the database.
func (w *world) traced() bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.databaseProcess()))
	return err == nil && !bytes.Contains(status, []byte("TracerPid:\t0\n"))
}

// databaseProcess finds the server by its port on the command line; zero when it
// runs elsewhere.
func (w *world) databaseProcess() int {
	_, port, err := net.SplitHostPort(w.database.Addr)
	if err != nil {
		return 0
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0
	}
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append(line, 0), []byte("--port="+port+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			return pid
		}
	}
	return 0
}
