//go:build unix

package testserver

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// removeTree removes a directory that a bootstrap may have been interrupted
// in. File systems that it mounted there are unmounted first: removing
// through such a mount would remove the machine's own files.
func removeTree(dir string) error {
	if err := unmountBelow(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

func unmountBelow(dir string) error {
	resolved, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for mounts: %w", err)
	}
	points, err := mountsBelow(resolved)
	if err != nil {
		return err
	}
	// Deepest last in the list, so from the end.
	for _, point := range slices.Backward(points) {
		if err := run(exec.Command("umount", point)); err != nil { //nolint:noctx // ends at once; a cancel half-way would leave the mount
			return err
		}
	}
	return nil
}

// mountsBelow lists the mount points in dir, outer ones first.
func mountsBelow(dir string) ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if errors.Is(err, os.ErrNotExist) { // not Linux: no bootstrap either
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	var points []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		const mountPoint = 4 // see proc(5)
		fields := strings.Fields(lines.Text())
		if len(fields) > mountPoint && isInside(fields[mountPoint], dir) {
			points = append(points, fields[mountPoint])
		}
	}
	return points, nil
}
