//go:build unix

package testserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/oncegate/oncegate/internal/loopback"
)

// containerLabel marks the containers of this package.
const containerLabel = "oncegate-testserver"

// dockerAnswers says why there is no Docker engine, or nil.
func dockerAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := exec.CommandContext(ctx, "docker", "info").Run(); err != nil {
		return fmt.Errorf("no Docker engine answers: %w", err)
	}
	return nil
}

// container is a server in a Docker container. A docker client stays attached
// to it: when the test process dies the client gets SIGTERM, which it passes
// on to the server.
type container struct {
	name     string
	launcher *launcher
	port     *loopback.Port
	create   []string // arguments of docker
	created  bool
	ended    chan struct{}
}

func newContainer(l *launcher, e engine, port *loopback.Port, extra []string) *container {
	name := containerLabel + "-" + strings.ToLower(rand.Text())
	create := []string{"create", "--name", name, "--label", containerLabel, "--publish", port.Addr() + ":" + e.imagePort}
	for key, value := range e.imageEnv {
		create = append(create, "--env", key+"="+value)
	}
	create = append(create, e.image)
	if e.id == "redis" {
		create = append(create, "redis-server", "--protected-mode", "no")
	}
	return &container{name: name, launcher: l, port: port, create: append(create, settings(e, extra)...)}
}

func (c *container) start(ctx context.Context) error {
	if !c.created {
		if err := docker(ctx, c.create...); err != nil { // downloads the image
			return err
		}
		c.created = true
	}
	cmd := exec.Command("docker", "start", "--attach", "--sig-proxy", c.name) //nolint:noctx // outlives the context of its start
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr, syscall.SIGTERM)
	if err := c.launcher.start(cmd.Start); err != nil {
		return fmt.Errorf("start container: %w", err)
	}
	ended := make(chan struct{})
	c.ended = ended
	go func() {
		_ = cmd.Wait() // how it ended is in the container's log
		close(ended)
	}()
	return nil
}

func (c *container) dead() <-chan struct{} { return c.ended }

func (c *container) freeze(ctx context.Context) error { return docker(ctx, "pause", c.name) }

func (c *container) thaw(ctx context.Context) error { return docker(ctx, "unpause", c.name) }

func (c *container) terminate(ctx context.Context) error {
	if err := docker(ctx, "stop", "-t", "20", c.name); err != nil {
		return err
	}
	return c.awaitEnd(ctx)
}

func (c *container) kill(ctx context.Context) error {
	select {
	case <-c.ended: // docker refuses to kill a dead container
		return nil
	default:
	}
	if err := docker(ctx, "kill", c.name); err != nil {
		return err
	}
	return c.awaitEnd(ctx)
}

func (c *container) awaitEnd(ctx context.Context) error {
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of container %s: %w", c.name, ctx.Err())
	}
}

func (c *container) discard(ctx context.Context) error {
	var err error
	if c.created {
		err = docker(ctx, "rm", "--force", "--volumes", c.name)
	}
	return errors.Join(err, c.port.Release())
}

func (c *container) lastWords() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", "logs", "--tail", "25", c.name).CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func docker(ctx context.Context, args ...string) error {
	return run(exec.CommandContext(ctx, "docker", args...))
}
