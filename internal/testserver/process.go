//go:build unix

package testserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/oncegate/oncegate/internal/loopback"
)

// process is a server that runs on this machine.
type process struct {
	engine   engine
	found    installation
	launcher *launcher
	port     *loopback.Port
	dir      *workdir
	args     []string
	env      []string                       // beside that of every server
	host     string                         // where it is reached
	within   func(start func() error) error // nil for this machine's own network

	cmd   *exec.Cmd
	ended chan struct{}
}

// newProcess prepares the work directory of a server.
func newProcess(ctx context.Context, l *launcher, e engine, found installation, port *loopback.Port, extra []string) (*process, error) {
	base, err := found.base()
	if err != nil {
		return nil, err
	}
	var initial string
	if e.id != "redis" {
		if initial, err = template(ctx, e, found, base); err != nil {
			return nil, err
		}
	}
	dir, err := newWorkdir(ctx, base)
	if err != nil {
		return nil, err
	}
	if err := fill(dir.path, initial); err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	args := arguments(e, found.inside(dir.path), strconv.Itoa(port.Number()), extra)
	return &process{engine: e, found: found, launcher: l, port: port, dir: dir, args: args, host: "127.0.0.1"}, nil
}

// fill gives a database server its data directory.
func fill(dir, template string) error {
	if template == "" {
		return nil
	}
	if err := os.CopyFS(filepath.Join(dir, "data"), os.DirFS(template)); err != nil {
		return fmt.Errorf("copy the data directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "init.sql"), []byte(rootAt("127.0.0.1")), 0o600); err != nil {
		return fmt.Errorf("initial statements: %w", err)
	}
	return nil
}

func (p *process) start(context.Context) error {
	log, err := os.OpenFile(p.logPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("server log: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	// The server outlives the context of its start.
	cmd := confined(context.Background(), p.found.root, p.found.binary, p.args...)
	cmd.Env = append(cmd.Env, p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// Its own group: an interrupt at the terminal is the test process's to
	// handle.
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr, syscall.SIGKILL)
	start := cmd.Start
	if p.within != nil {
		start = func() error { return p.within(cmd.Start) }
	}
	if err := p.launcher.start(start); err != nil {
		return fmt.Errorf("start %s: %w", describe(p.engine, p.args), err)
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(ended)
	}()
	return nil
}

func (p *process) addr() string { return net.JoinHostPort(p.host, strconv.Itoa(p.port.Number())) }

func (p *process) dead() <-chan struct{} { return p.ended }

func (p *process) freeze(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze: %w", err)
	}
	return awaitStopped(ctx, p.cmd.Process.Pid)
}

func (p *process) thaw(context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("thaw: %w", err)
	}
	return nil
}

func (p *process) terminate(ctx context.Context) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	// A frozen server does not hear the request to end.
	if err := p.signal(syscall.SIGCONT); err != nil {
		return err
	}
	patience := time.NewTimer(20 * time.Second)
	defer patience.Stop()
	select {
	case <-p.ended:
		return nil
	case <-patience.C:
		return p.kill(ctx)
	}
}

func (p *process) kill(ctx context.Context) error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of process %d: %w", p.cmd.Process.Pid, ctx.Err())
	}
}

// signal sends a signal; to a process that has ended it sends none.
func (p *process) signal(s os.Signal) error {
	if p.cmd == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to process %d: %w", s, p.cmd.Process.Pid, err)
	}
	return nil
}

func (p *process) discard(ctx context.Context) error {
	var killErr error
	if p.cmd != nil {
		killErr = p.kill(ctx)
	}
	return errors.Join(killErr, p.dir.remove(), p.port.Release())
}

func (p *process) lastWords() string {
	log, err := os.ReadFile(p.logPath())
	if err != nil {
		return err.Error()
	}
	return tail(string(log), 25)
}

func (p *process) logPath() string { return filepath.Join(p.dir.path, "log") }
