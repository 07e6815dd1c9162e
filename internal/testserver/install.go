//go:build unix

package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// install installs the engine where that can be done without asking anybody.
func install(ctx context.Context, e engine) (installation, error) {
	var found installation
	err := installOnce(ctx, func() (ok bool) {
		found, ok = findInstalled(ctx, e)
		return ok
	}, func() error {
		if e.chroot != "" {
			dir, err := chrootDir(e)
			if err != nil {
				return err
			}
			return bootstrap(ctx, dir, "sid", e.chroot)
		}
		return aptInstall(ctx, e.packages...)
	})
	if err != nil {
		return installation{}, fmt.Errorf("%s %s or newer: %w", e.name, e.oldest, err)
	}
	return found, nil
}

// InstallPackages installs Debian packages that a test needs beside servers,
// where that can be done without asking anybody: on Debian, as root. It does
// nothing when there finds what it is for, and fails when there still does not
// afterwards, with [ErrMissing]. Several processes may call it at once.
func InstallPackages(ctx context.Context, there func() bool, packages ...string) error {
	if err := installOnce(ctx, there, func() error { return aptInstall(ctx, packages...) }); err != nil {
		return fmt.Errorf("%s: %w: %w", strings.Join(packages, ", "), ErrMissing, err)
	}
	return nil
}

// installOnce adds what is not there yet, one process at a time.
func installOnce(ctx context.Context, there func() bool, add func() error) error {
	if there() {
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("not root, so nothing is installed")
	}
	if _, err := os.Stat("/etc/debian_version"); err != nil {
		return errors.New("not Debian, so nothing is installed")
	}
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	unlock, err := lockFile(ctx, filepath.Join(cache, "install.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	// Whoever held the lock may have installed it.
	if there() {
		return nil
	}
	if err := add(); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	if !there() {
		return errors.New("installed, but it is still not there")
	}
	return nil
}

// aptInstall installs Debian packages. It never removes one (a MySQL that is
// already there excludes MariaDB) and never starts a service.
func aptInstall(ctx context.Context, packages ...string) error {
	allow, err := forbidServices("/usr/sbin/policy-rc.d")
	if err != nil {
		return err
	}
	if err := run(apt(ctx, "update")); err != nil {
		return errors.Join(err, allow())
	}
	args := append([]string{"install", "-y", "--no-install-recommends", "--no-remove"}, packages...)
	return errors.Join(run(apt(ctx, args...)), allow())
}

func apt(ctx context.Context, args ...string) *exec.Cmd {
	// Another apt on the machine holds dpkg's lock for a while; wait for it.
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=120"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return cmd
}

// forbidServices keeps packages from starting services while they are
// installed, unless the machine has a policy of its own.
func forbidServices(policy string) (allow func() error, err error) {
	// A child that is forked meanwhile would have the file open for writing, and for
	// as long nobody can run it: "text file busy".
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := os.OpenFile(policy, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // a program that dpkg runs
	if errors.Is(err, os.ErrExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("policy against starting services: %w", err)
	}
	_, writeErr := file.WriteString("#!/bin/sh\nexit 101\n")
	if err := errors.Join(writeErr, file.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("policy against starting services: %w", err), os.Remove(policy))
	}
	return func() error { return os.Remove(policy) }, nil
}

// isInside says whether path is dir or below it.
func isInside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
