//go:build unix

package testserver

import (
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package that uses servers, ends the servers and
// exits. It is what TestMain calls.
func Main(m *testing.M) {
	os.Exit(Stopping(m).Run()) //nolint:revive // deep-exit: called by TestMain and named after it
}

// Suite is the tests of a package together with their servers. It fits
// goleak.VerifyTestMain, which looks for goroutines after Run:
//
//	goleak.VerifyTestMain(testserver.Stopping(m))
type Suite struct {
	tests *testing.M
}

// Stopping returns the suite whose Run ends the servers after the tests.
func Stopping(m *testing.M) *Suite { return &Suite{tests: m} }

// Run runs the tests, ends the servers and returns the exit code.
func (s *Suite) Run() int {
	code := s.tests.Run()
	if err := servers.stop(); err != nil {
		fmt.Fprintf(os.Stderr, "testserver: stop servers: %v\n", err)
		return max(code, 1)
	}
	return code
}
