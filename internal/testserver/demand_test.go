//go:build unix

package testserver

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNothingIsExcusedInCIButWhatItSaysIsForbidden(t *testing.T) {
	t.Parallel()
	missing := fmt.Errorf("an engine: %w", ErrMissing)
	forbidden := fmt.Errorf("a disk: %w", ErrForbidden)
	toolMissing := fmt.Errorf("a disk: %w: %w", ErrForbidden, ErrMissing)
	fault := errors.New("it does not start")
	for name, c := range map[string]struct {
		variables map[string]string
		excused   []error
		not       []error
	}{
		"on somebody's machine": {nil, []error{missing, forbidden, toolMissing}, []error{fault}},
		"in CI":                 {map[string]string{"CI": "true"}, nil, []error{missing, forbidden, toolMissing, fault}},
		"in a CI without rights": {
			map[string]string{"CI": "true", unprivileged: "true"}, []error{forbidden, toolMissing}, []error{missing, fault},
		},
		"in a CI that says it has them": {
			map[string]string{"CI": "true", unprivileged: "false"}, nil, []error{missing, forbidden, toolMissing, fault},
		},
	} {
		getenv := func(v string) string { return c.variables[v] }
		for _, err := range c.excused {
			require.True(t, excused(err, getenv), "%s: %v", name, err)
		}
		for _, err := range c.not {
			require.False(t, excused(err, getenv), "%s: %v", name, err)
		}
	}
}

// ending notes how a test would have ended.
type ending struct {
	testing.TB
	skipped, failed string
}

func (e *ending) Helper()                           {}
func (e *ending) Skipf(format string, args ...any)  { e.skipped = fmt.Sprintf(format, args...) }
func (e *ending) Fatalf(format string, args ...any) { e.failed = fmt.Sprintf(format, args...) }

func TestDemandSaysWhatIsNotTested(t *testing.T) {
	forbidden := fmt.Errorf("a disk of its own: %w", ErrForbidden)
	demanded := func(err error) ending {
		e := ending{TB: t}
		Demand(&e, err)
		e.TB = nil
		return e
	}
	t.Setenv("CI", "true")
	t.Setenv(unprivileged, "")
	require.Equal(t, ending{}, demanded(nil))
	require.Equal(t, ending{failed: "a disk of its own: not permitted here"}, demanded(forbidden))
	t.Setenv(unprivileged, "true")
	require.Equal(t, ending{skipped: "NOT TESTED: a disk of its own: not permitted here"}, demanded(forbidden))
}
