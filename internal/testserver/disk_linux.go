package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Disk is the disk of one database server: a file system of its own that can lose
// its power.
type Disk struct {
	tb           testing.TB
	server       *SQLServer
	image, mount string
}

// StartMySQLOnDisk starts a MySQL as [StartMySQL] does, with a disk of its own.
// Where none can be mounted the test ends as [Demand] says of [ErrForbidden].
func StartMySQLOnDisk(tb testing.TB) (*SQLServer, *Disk) {
	tb.Helper()
	return startOnDisk(tb, mysqlEngine())
}

// StartMariaDBOnDisk starts a MariaDB as [StartMySQLOnDisk] does.
func StartMariaDBOnDisk(tb testing.TB) (*SQLServer, *Disk) {
	tb.Helper()
	return startOnDisk(tb, mariaDBEngine())
}

func startOnDisk(tb testing.TB, e engine) (*SQLServer, *Disk) {
	tb.Helper()
	d := &Disk{tb: tb}
	s, err := servers.startSQL(tb.Context(), e, nil, d.install)
	Demand(tb, err)
	s.belongTo(tb)
	d.server = s
	return s, d
}

// install moves the data directory of a server that is not started yet to the disk.
func (d *Disk) install(ctx context.Context, p *process) error {
	d.image, d.mount = filepath.Join(p.dir.path, "disk"), filepath.Join(p.dir.path, "data")
	err := InstallPackages(ctx, func() bool {
		_, err := exec.LookPath("mkfs.ext4")
		return err == nil
	}, "e2fsprogs")
	if err != nil {
		return fmt.Errorf("a disk of its own: %w: %w", ErrForbidden, err)
	}
	if err := run(exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", "-d", d.mount, d.image, "3G")); err != nil {
		return fmt.Errorf("a disk of its own: %w", err)
	}
	if err := errors.Join(os.RemoveAll(d.mount), os.Mkdir(d.mount, 0o700)); err != nil {
		return fmt.Errorf("a disk of its own: %w", err)
	}
	if err := d.attach(ctx); err != nil {
		return fmt.Errorf("a disk of its own: %w: %w", ErrForbidden, err)
	}
	return nil
}

// attach mounts the image by a device of its own: one that was used before may
// still be held by somebody, with a file system that has stopped.
func (d *Disk) attach(ctx context.Context) error {
	var complaint strings.Builder
	losetup := exec.CommandContext(ctx, "losetup", "--find", "--show", d.image)
	losetup.Stderr = &complaint
	out, err := losetup.Output()
	if err != nil {
		return fmt.Errorf("losetup: %w %s", err, complaint.String())
	}
	device := strings.TrimSpace(string(out))
	return errors.Join(
		run(exec.CommandContext(ctx, "mount", device, d.mount)),
		run(exec.CommandContext(ctx, "losetup", "--detach", device))) // when it is no longer used
}

// From the kernel's fs/ext4/ext4.h: the file system stops as it is on the disk.
// Nothing that was only in memory is written, not even to its journal.
const (
	ioctlShutdown = 0x8004587d // EXT4_IOC_SHUTDOWN
	noLogFlush    = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH
)

// CutPower loses everything that was not flushed to the disk, kills the server,
// and mounts the disk again, as a machine does when the power is back. The server
// is dead until it is restarted.
func (d *Disk) CutPower() {
	d.tb.Helper()
	err := d.stop()
	d.server.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	err = errors.Join(err,
		unmount(ctx, d.mount),
		d.attach(ctx))
	if err != nil {
		d.tb.Errorf("testserver: cut the power: %v", err)
	}
}

// unmount waits for what the kernel still has open for a server that is dead: its
// asynchronous writes end after it.
func unmount(ctx context.Context, mount string) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := unix.Unmount(mount, 0)
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("unmount %s: %w", mount, err)
		}
	}
}

func (d *Disk) stop() error {
	dir, err := os.Open(d.mount)
	if err != nil {
		return fmt.Errorf("open the disk: %w", err)
	}
	defer func() { _ = dir.Close() }() // only read
	if err := unix.IoctlSetPointerInt(int(dir.Fd()), ioctlShutdown, noLogFlush); err != nil {
		return fmt.Errorf("stop the disk: %w", err)
	}
	return nil
}
