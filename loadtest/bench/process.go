//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	readyTimeout = 60 * time.Second
	stopTimeout  = 40 * time.Second // above the gateway's own shutdown grace
)

// process is a program that was started here. It does not outlive this one.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   *tail
	ended chan struct{}
	err   error // of its end; read after ended
}

// spawn starts a program. It has an owner goroutine on a thread of its own: the
// kernel ends the child when the thread that started it is gone, and the Go
// runtime ends threads as it sees fit.
func spawn(cmd *exec.Cmd) (*process, error) {
	p := &process{name: filepath.Base(cmd.Path), cmd: cmd, log: &tail{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.SysProcAttr = ownGroup()
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	return p, nil
}

// awaitReady waits until the address answers /readyz.
func (p *process) awaitReady(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 2 * time.Second}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if status, err := get(ctx, client, "http://"+addr+"/readyz", io.Discard); err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-ticker.C:
		case <-p.ended:
			return fmt.Errorf("%s ended while it was starting: %w\n%s", p.name, p.err, p.log)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", p.name, ctx.Err(), p.log)
		}
	}
}

// stop asks the program to end, and ends it if it does not.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	patience := time.NewTimer(stopTimeout)
	defer patience.Stop()
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("%s did not end well: %w\n%s", p.name, p.err, p.log)
		}
		return nil
	case <-patience.C:
		err := p.cmd.Process.Kill()
		<-p.ended
		return errors.Join(fmt.Errorf("%s did not end by itself\n%s", p.name, p.log), err)
	}
}

// get copies an answer and returns its status.
func get(ctx context.Context, client *http.Client, url string, to io.Writer) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(to, resp.Body)
	return resp.StatusCode, err
}

// tail keeps the end of what a program says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4 << 10

// Write implements [io.Writer].
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

// environment is this process's own with the given settings, and without others
// of the gateway, which would change what is measured.
func environment(settings map[string]string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ONCEGATE_") {
			env = append(env, v)
		}
	}
	for name, value := range settings {
		env = append(env, "ONCEGATE_"+strings.ToUpper(strings.ReplaceAll(name, ".", "__"))+"="+value)
	}
	return env
}
