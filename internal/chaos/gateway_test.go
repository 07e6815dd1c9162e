//go:build linux

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/loopback"
	"github.com/oncegate/oncegate/internal/testserver"
)

const (
	// macKey and tokenSecret are shared by the gateways of a deployment.
	macKey      = "a key of sixteen bytes or more"
	tokenSecret = "a secret of thirty-two bytes or more"

	readyTime = 60 * time.Second // with crash recovery of the database, on a busy machine
	endTime   = 60 * time.Second // above the shutdown grace
)

var errNoEnd = errors.New("the gateway did not end in time")

// gateway is one gateway that may be killed, frozen and started again at the
// same address.
type gateway struct {
	t           *testing.T
	program     string
	within      []string // a command that runs the program somewhere else
	addr, admin string
	settings    map[string]string // by environment variable
	log         testserver.Output

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended <-chan struct{}
	extra []string                 // of its last start
	clock *testserver.ProgramClock // of this process, once it was moved
}

// newGateway prepares a gateway that is killed with the test, if it still runs.
func newGateway(t *testing.T, program string, settings map[string]string) *gateway {
	t.Helper()
	g := &gateway{t: t, program: program, settings: maps.Clone(settings)}
	g.addr, g.admin = reserved(t), reserved(t)
	g.settings["ONCEGATE_HTTP__LISTEN"], g.settings["ONCEGATE_ADMIN__LISTEN"] = g.addr, g.admin
	g.settings["ONCEGATE_DATA_DIR"] = t.TempDir()
	t.Cleanup(func() {
		g.kill()
		g.mu.Lock()
		g.dropClock()
		g.mu.Unlock()
		if t.Failed() {
			t.Logf("the log of the gateway at %s ends with:\n%s", g.addr, g.log.Tail(30))
		}
	})
	return g
}

func reserved(t *testing.T) string {
	t.Helper()
	port, err := loopback.Reserve()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, port.Release()) })
	return port.Addr()
}

// start starts the process; extra are variables for this one start.
func (g *gateway) start(extra ...string) {
	g.t.Helper()
	line := append(slices.Clone(g.within), g.program, "serve")
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(environment(), extra...)
	for _, name := range slices.Sorted(maps.Keys(g.settings)) {
		cmd.Env = append(cmd.Env, name+"="+g.settings[name])
	}
	cmd.Stdout, cmd.Stderr = &g.log, &g.log
	ended, err := startBound(cmd)
	g.mu.Lock()
	g.dropClock()
	g.cmd, g.ended, g.extra = cmd, ended, extra
	g.mu.Unlock()
	if err != nil {
		g.t.Errorf("start the gateway: %v", err)
	}
}

// startBound starts a process that does not outlive this one. The channel is closed
// when it has ended; its state then says how.
func startBound(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	// An interrupt at the terminal is for this process to handle.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	over, started := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(over)
		// The kernel sends the death signal when this thread ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its state
		}
	}()
	return over, <-started
}

// environment is this process's, without settings of a gateway.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ONCEGATE_") })
}

// ready waits until the gateway takes orders.
func (g *gateway) ready() {
	g.t.Helper()
	if err := g.awaitReady(); err != nil {
		g.t.Fatalf("%v\n%s", err, g.log.Tail(30))
	}
}

// awaitReady starts a gateway again that gave up its start, as a supervisor does:
// a database that a busy machine holds up may not answer it in time.
func (g *gateway) awaitReady() error {
	const mostStarts = 8 // each takes a database that is busy some seconds to fail
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	starts := 1
	for tick := every(ctx, 20*time.Millisecond); tick(); {
		if status, _, err := get(ctx, "http://"+g.addr+"/readyz"); err == nil && status == http.StatusOK {
			return nil
		}
		if g.end() == nil || g.running() {
			continue
		}
		if err := g.awaitEnd(); !gaveUp(err) || starts == mostStarts {
			return fmt.Errorf("the gateway ended while it was starting: %v", err) //nolint:errorlint // it may be nil
		}
		g.t.Logf("a gateway gave up its start: %s", g.log.Tail(1))
		starts++
		g.start(g.extra...)
	}
	return errors.New("the gateway is not ready")
}

// end is closed when the process that was started last has ended.
func (g *gateway) end() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended
}

func (g *gateway) running() bool {
	ended := g.end()
	if ended == nil {
		return false
	}
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// signal sends a signal; a process that has ended gets none.
func (g *gateway) signal(s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd == nil || g.cmd.Process == nil {
		return
	}
	if err := g.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		g.t.Errorf("signal %v to a gateway: %v", s, err)
	}
}

// kill ends it at once and waits until it is gone.
func (g *gateway) kill() {
	if !g.running() {
		return
	}
	g.signal(syscall.SIGKILL)
	<-g.end()
}

// stop asks it to end and returns how it did.
func (g *gateway) stop() error {
	g.signal(syscall.SIGCONT)
	g.signal(syscall.SIGTERM)
	return g.awaitEnd()
}

// awaitEnd waits for the end and reports how the process ended, unless it was
// in order.
func (g *gateway) awaitEnd() error {
	select {
	case <-g.end():
		g.mu.Lock()
		defer g.mu.Unlock()
		if state := g.cmd.ProcessState; state != nil && !state.Success() {
			return &exec.ExitError{ProcessState: state}
		}
		return nil
	case <-time.After(endTime):
		return errNoEnd
	}
}

// gaveUp reports whether a process ended with an error that it told of.
func gaveUp(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 1
}

// killedItself reports whether a process ended by SIGKILL.
func killedItself(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// command runs another command of the same configuration and returns what it
// wrote to stdout, and its exit code.
func (g *gateway) command(args ...string) (stdout string, code int) {
	g.t.Helper()
	// The orders of an hour take an audit some minutes: this is for one that hangs.
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, g.program, args...)
	cmd.Env = environment()
	for name, value := range g.settings {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		g.t.Fatalf("oncegate %s: %v", strings.Join(args, " "), err)
	}
	if strings.Contains(complaints.String(), "\ngoroutine ") {
		g.t.Fatalf("oncegate %s panicked:\n%s", strings.Join(args, " "), complaints.String())
	}
	if code = cmd.ProcessState.ExitCode(); code != 0 {
		g.t.Logf("oncegate %s: exit code %d\n%s", strings.Join(args, " "), code, complaints.String())
	}
	return out.String(), code
}

// get fetches a page on a connection of its own.
func get(ctx context.Context, url string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}
