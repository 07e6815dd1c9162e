//go:build linux && ha

package hatest

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/loopback"
	"github.com/oncegate/oncegate/internal/testserver"
)

// process is a program that runs for as long as the test, at most.
type process struct {
	cmd   *exec.Cmd
	log   testserver.Output
	ended chan struct{}
}

// run starts a program that is killed with the test, or with this process.
func run(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		defer close(p.ended)
		// The kernel sends the death signal when this thread ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it was killed
		}
	}()
	require.NoError(t, <-started)
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // unless it has ended
		<-p.ended
		if t.Failed() {
			t.Logf("the log of %s has these errors:\n%s\nand ends with:\n%s", cmd.Path, containing(p.log.String(), `"level":"ERROR"`), p.log.Tail(30))
		}
	})
	return p
}

func reserve(t *testing.T) *loopback.Port {
	t.Helper()
	port, err := loopback.Reserve()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, port.Release()) })
	return port
}

// patient bounds whatever a test waits for, on a busy machine.
const patient = 90 * time.Second

// await asks until the check has no error.
func await(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	var err error
	for {
		if err = check(ctx); err == nil {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// containing returns the lines of a log that contain a text.
func containing(log, text string) string {
	var found strings.Builder
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			found.WriteString(line)
		}
	}
	return found.String()
}
