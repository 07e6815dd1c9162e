//go:build unix

package testserver

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package that uses servers, ends the servers and
// exits. It is what TestMain calls.
func Main(m *testing.M) {
	os.Exit((&Suite{tests: m}).Run()) //nolint:revive // deep-exit: called by TestMain and named after it
}

// Suite is the tests of a package together with their servers. It fits
// goleak.VerifyTestMain, which looks for goroutines after Run:
//
//	goleak.VerifyTestMain(testserver.Settling(m))
type Suite struct {
	tests  *testing.M
	stay   []goleak.Option
	settle bool
}

// Settling returns the suite whose Run ends the servers after the tests, and then
// waits, for half a minute at most, until the goroutines of the tests have ended but
// for those that stay. goleak alone waits for less than half a second: net/http keeps
// a connection that it answered with an error for as long, and a pool of the Redis
// client that could not connect sleeps for a second before it sees that it was closed.
func Settling(m *testing.M, stay ...goleak.Option) *Suite {
	return &Suite{tests: m, stay: stay, settle: true}
}

// Run runs the tests, ends the servers and returns the exit code.
func (s *Suite) Run() int {
	code := s.tests.Run()
	if err := servers.stop(); err != nil {
		fmt.Fprintf(os.Stderr, "testserver: stop servers: %v\n", err)
		return max(code, 1)
	}
	for end := time.Now().Add(30 * time.Second); s.settle && goleak.Find(s.stay...) != nil && time.Now().Before(end); {
		continue // Find itself waits a little, longer each time
	}
	return code
}
