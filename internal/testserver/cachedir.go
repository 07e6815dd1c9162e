//go:build unix

package testserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// cacheDir is where installations, templates and data directories live. It is
// outside the checkout, so that a fresh clone finds what an older one made.
func cacheDir() (string, error) {
	dir := os.Getenv("ONCEGATE_TEST_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil { // no HOME, as in some build services
			base = filepath.Join(os.TempDir(), "cache-"+strconv.Itoa(os.Geteuid()))
		}
		dir = filepath.Join(base, "oncegate")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cache directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // servers that drop their privileges must reach their files below it
		return "", fmt.Errorf("cache directory: %w", err)
	}
	return dir, nil
}

// chrootDir is where the engine is bootstrapped.
func chrootDir(e engine) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, e.id+"-sid"), nil
}

// lockFile takes an exclusive lock that dies with the process and returns what
// gives it back. Several test binaries run at once and share the cache.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !tryLock(file) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			_ = file.Close()
			return nil, fmt.Errorf("wait for lock %s: %w", path, ctx.Err())
		}
	}
	// Closing gives the lock back; the file stays, since deleting it would let
	// two processes lock two files of one name.
	return func() { _ = file.Close() }, nil
}

func tryLock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
