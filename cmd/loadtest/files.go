package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/oncegate/oncegate/loadtest/report"
	"github.com/oncegate/oncegate/loadtest/result"
)

const (
	resultName = "result.json"
	reportName = "report.html"
)

// write puts a result and its report into a directory and returns the path of
// the report.
func write(dir string, r *result.Result) (string, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("write the result: %w", err)
	}
	if err := create(filepath.Join(dir, resultName), r.Write); err != nil {
		return "", err
	}
	page := filepath.Join(dir, reportName)
	return page, create(page, func(w io.Writer) error { return report.HTML(w, r) })
}

// makeDir makes a directory with those above it, and says how to take away again
// what it made and is empty.
func makeDir(dir string) (unmake func(), err error) {
	var missing []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, d)
	}
	return func() {
		for _, d := range missing {
			_ = os.Remove(d) // one that is not empty stays
		}
	}, os.MkdirAll(dir, 0o750)
}

func create(path string, fill func(io.Writer) error) error {
	f, err := os.Create(path) //nolint:gosec // G304: the path is the operator's own
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := errors.Join(fill(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// open reads a result: a file, or a directory that a run wrote.
func open(path string) (*result.Result, error) {
	if isDir(path) {
		path = filepath.Join(path, resultName)
	}
	return result.Read(path)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// openList reads results whose paths are separated by commas.
func openList(paths string) ([]*result.Result, error) {
	var all []*result.Result
	for p := range strings.SplitSeq(paths, ",") {
		if p == "" {
			return nil, fmt.Errorf("results %q: an empty path", paths)
		}
		r, err := open(p)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}
