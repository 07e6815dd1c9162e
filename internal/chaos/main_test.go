//go:build linux

package chaos

import (
	"os"
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite{testserver.Stopping(m)}) }
