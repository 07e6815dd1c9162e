//go:build unix

package testserver

import (
	"errors"
	"os"
	"testing"
)

var (
	// ErrMissing marks what is not on this machine and could be: an engine, a
	// program, a package.
	ErrMissing = errors.New("not available here")
	// ErrForbidden marks what takes rights that this machine does not give to
	// tests: to mount a file system, to make a namespace, to trace a process.
	ErrForbidden = errors.New("not permitted here")
)

// unprivileged is the variable by which a CI says that its machine forbids what
// [ErrForbidden] marks.
const unprivileged = "ONCEGATE_TEST_UNPRIVILEGED"

// Demand ends the test when err says that it lacks something: as skipped where
// that is [Excused], as failed otherwise. Nil does nothing.
func Demand(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case Excused(err):
		tb.Skipf("NOT TESTED: %v", err)
	default:
		tb.Fatalf("%v", err)
	}
}

// Excused reports whether a test may do without what it lacks, by the mark that
// the error carries; an error without one is a fault. Anything may lack on
// somebody's own machine. With CI=true nothing may, but what is forbidden, if
// ONCEGATE_TEST_UNPRIVILEGED=true says that the CI knows.
func Excused(err error) bool { return excused(err, os.Getenv) }

func excused(err error, getenv func(string) string) bool {
	ci := getenv("CI") == "true"
	switch {
	case errors.Is(err, ErrForbidden): // also where a program lacks: without the rights it would be of no use
		return !ci || getenv(unprivileged) == "true"
	case errors.Is(err, ErrMissing):
		return !ci
	default:
		return false
	}
}
