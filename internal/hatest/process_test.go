//go:build linux && ha

package hatest

import (
	"bytes"
	"context"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/loopback"
)

// process is a program that runs for as long as the test, at most.
type process struct {
	cmd   *exec.Cmd
	log   safeBuffer
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
			t.Logf("the log of %s has these errors:\n%s\nand ends with:\n%s", cmd.Path, p.log.containing(`"level":"ERROR"`), p.log.tail(30))
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

// safeBuffer collects what a process writes.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) tail(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := strings.Split(strings.TrimRight(b.buf.String(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// containing returns the lines that contain a text.
func (b *safeBuffer) containing(text string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found strings.Builder
	for line := range strings.Lines(b.buf.String()) {
		if strings.Contains(line, text) {
			found.WriteString(line)
		}
	}
	return found.String()
}
