//go:build linux && ha

package hatest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncegate/oncegate/internal/testserver"
)

// suite is the tests with what they share: the built program.
type suite struct{ tests *testserver.Suite }

func (s suite) Run() int {
	dir, err := os.MkdirTemp("", "oncegate-ha-")
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "hatest:", err)
		return 1
	}
	programDir = dir
	code := s.tests.Run()
	if err := os.RemoveAll(dir); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "hatest:", err)
		return max(code, 1)
	}
	return code
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite{testserver.Settling(m)}) }

// One program serves all tests of this process.
var (
	programDir string
	buildOnce  = sync.OnceValues(build)
)

func build() (string, error) {
	path := filepath.Join(programDir, "oncegate")
	cmd := exec.Command("go", "build", "-o", path, "github.com/oncegate/oncegate/cmd/gateway")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the gateway: %w\n%s", err, out)
	}
	return path, nil
}

// program is the path of the gateway.
func program(t *testing.T) string {
	t.Helper()
	path, err := buildOnce()
	require.NoError(t, err)
	return path
}
