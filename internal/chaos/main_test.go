//go:build linux

package chaos

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/oncegate/oncegate/internal/testserver"
)

// suite is the tests with what they share: servers and built programs.
type suite struct{ tests *testserver.Suite }

func (s suite) Run() int {
	code := s.tests.Run()
	if err := programs.remove(); err != nil {
		_, _ = os.Stderr.WriteString("chaos: " + err.Error() + "\n")
		return max(code, 1)
	}
	return code
}

func TestMain(m *testing.M) {
	if addrs := os.Getenv(balancerVariable); addrs != "" {
		os.Exit(balanceInstead(strings.Split(addrs, ",")))
	}
	goleak.VerifyTestMain(suite{testserver.Settling(m)})
}
