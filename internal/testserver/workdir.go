//go:build unix

package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// workdir is the private directory of one server. The lock beside it dies with
// the process, which tells directories in use from those that a killed process
// left.
type workdir struct {
	path string
	lock *os.File
}

const lockSuffix = ".lock"

// newWorkdir makes a directory below base, after removing what dead processes
// left there.
func newWorkdir(ctx context.Context, base string) (*workdir, error) {
	runs := filepath.Join(base, "run")
	if err := os.MkdirAll(runs, 0o700); err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	// Nobody may sweep between the making of a lock file and its locking.
	unlock, err := lockFile(ctx, filepath.Join(base, "run.lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := sweep(runs); err != nil {
		return nil, err
	}
	lock, err := os.CreateTemp(runs, "*"+lockSuffix)
	if err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	w := &workdir{path: strings.TrimSuffix(lock.Name(), lockSuffix), lock: lock}
	if !tryLock(lock) {
		return nil, fmt.Errorf("work directory %s is locked by another process", w.path)
	}
	if err := os.Mkdir(w.path, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("work directory: %w", err), w.remove())
	}
	return w, nil
}

func (w *workdir) remove() error {
	err := errors.Join(removeTree(w.path), os.Remove(w.lock.Name()), w.lock.Close())
	if err != nil {
		return fmt.Errorf("remove work directory: %w", err)
	}
	return nil
}

// sweep removes the directories whose owner is gone.
func sweep(runs string) error {
	locks, err := filepath.Glob(filepath.Join(runs, "*"+lockSuffix))
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	for _, name := range locks {
		lock, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) { // its owner removed it just now
			continue
		}
		if err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		if !tryLock(lock) {
			_ = lock.Close() // in use
			continue
		}
		abandoned := workdir{path: strings.TrimSuffix(name, lockSuffix), lock: lock}
		if err := abandoned.remove(); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	return nil
}
