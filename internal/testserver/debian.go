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
)

// Debian returns the root directory of a small Debian of a suite, such as
// bookworm, that has the packages, for tests that need a machine of their own. It is made where that can be done
// without asking anybody: on Debian, as root; and kept in the cache directory for
// the next test, so it must not be written to. Several processes may call it at
// once.
func Debian(ctx context.Context, suite string, packages ...string) (root string, err error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	root = filepath.Join(cache, suite+"-"+strings.Join(packages, "-"))
	return root, installOnce(ctx, func() bool {
		_, err := os.Stat(root) // it is there when it is complete
		return err == nil
	}, func() error { return bootstrap(ctx, root, suite, strings.Join(packages, ",")) })
}

// bootstrap makes a small Debian with packages (separated by commas) in a
// directory of the cache. It is made elsewhere and renamed when complete, so that
// an interrupted one is never taken for it.
func bootstrap(ctx context.Context, dir, suite, packages string) error {
	if _, err := exec.LookPath("debootstrap"); err != nil {
		if err := aptInstall(ctx, "debootstrap", "debian-archive-keyring"); err != nil {
			return err
		}
	}
	abandoned, err := filepath.Glob(dir + ".making-*")
	if err != nil {
		return fmt.Errorf("look for abandoned installations: %w", err)
	}
	for _, old := range append(abandoned, dir) { // dir: there, but of no use
		if err := removeTree(old); err != nil {
			return err
		}
	}
	making, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".making-")
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	if err := os.Chmod(making, 0o755); err != nil { //nolint:gosec // the root of a file system
		return fmt.Errorf("bootstrap: %w", err)
	}
	cmd := exec.CommandContext(ctx, "debootstrap", "--variant=minbase", "--include="+packages, suite, making)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if err := run(cmd); err != nil {
		// The reason is in its log only.
		log, _ := os.ReadFile(filepath.Join(making, "debootstrap/debootstrap.log"))
		return errors.Join(err, errors.New(tail(string(log), 10)), removeTree(making))
	}
	if err := unmountBelow(making); err != nil {
		return err
	}
	// What was downloaded is not needed again.
	if err := removeTree(filepath.Join(making, "var/cache/apt/archives")); err != nil {
		return err
	}
	if err := os.Rename(making, dir); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}
