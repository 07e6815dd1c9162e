package testserver

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed testdata/clock/clock.c
var clockSource []byte

// Clock is the wall clock of one server: the machine's, moved.
type Clock struct {
	tb   testing.TB
	path string // of the file that says by how much
}

// Move puts the clock so far before the machine's, or behind it. It takes effect
// at once and outlives a restart of the server.
func (c *Clock) Move(by time.Duration) {
	c.tb.Helper()
	// In place: the server has the file in its memory.
	file, err := os.OpenFile(c.path, os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteAt(offset(by), 0)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		c.tb.Errorf("testserver: move the clock: %v", err)
	}
}

func offset(by time.Duration) []byte {
	return binary.NativeEndian.AppendUint64(nil, uint64(by)) //nolint:gosec // its bits, signed again on the other side
}

// StartMySQLWithClock starts a MySQL as [StartMySQL] does, with a clock of its own.
func StartMySQLWithClock(tb testing.TB) (*SQLServer, *Clock) {
	tb.Helper()
	return startSQLWithClock(tb, mysqlEngine())
}

// StartMariaDBWithClock starts a MariaDB as [StartMariaDB] does, with a clock of
// its own.
func StartMariaDBWithClock(tb testing.TB) (*SQLServer, *Clock) {
	tb.Helper()
	return startSQLWithClock(tb, mariaDBEngine())
}

func startSQLWithClock(tb testing.TB, e engine) (*SQLServer, *Clock) {
	tb.Helper()
	c := &Clock{tb: tb}
	s, err := servers.startSQL(tb.Context(), e, nil, c.give)
	Demand(tb, err)
	s.belongTo(tb)
	return s, c
}

// StartRedisWithClock starts a Redis as [StartRedis] does, with a clock of its own.
func StartRedisWithClock(tb testing.TB) (*RedisServer, *Clock) {
	tb.Helper()
	c := &Clock{tb: tb}
	r, err := servers.startRedis(tb.Context(), nil, c.give)
	Demand(tb, err)
	r.belongTo(tb)
	return r, c
}

// give has a server that is not started yet go by this clock.
func (c *Clock) give(ctx context.Context, p *process) error {
	err := InstallPackages(ctx, func() bool {
		_, err := exec.LookPath("gcc")
		return err == nil
	}, "gcc", "libc6-dev")
	if err != nil {
		return fmt.Errorf("a clock: %w", err)
	}
	source, library := filepath.Join(p.dir.path, "clock.c"), filepath.Join(p.dir.path, "clock.so")
	c.path = filepath.Join(p.dir.path, "clock")
	if err := errors.Join(os.WriteFile(source, clockSource, 0o600), os.WriteFile(c.path, offset(0), 0o644)); err != nil { //nolint:gosec // the server may run as another user
		return fmt.Errorf("a clock: %w", err)
	}
	if err := run(exec.CommandContext(ctx, "gcc", "-O2", "-shared", "-fPIC", "-o", library, source, "-pthread")); err != nil {
		return fmt.Errorf("a clock: %w", err)
	}
	inside := p.found.inside(p.dir.path)
	p.env = append(p.env, "LD_PRELOAD="+filepath.Join(inside, "clock.so"), "CLOCK_OFFSET="+filepath.Join(inside, "clock"))
	return nil
}
