//go:build linux

package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// programs are the binaries that this process has built, by build tags.
var programs shelf

type shelf struct {
	mu   sync.Mutex
	dir  string
	path map[string]string
}

// gatewayProgram builds the gateway with the tags, once.
func gatewayProgram(t *testing.T, tags string) string {
	t.Helper()
	path, err := programs.build(tags)
	require.NoError(t, err)
	return path
}

func (s *shelf) build(tags string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if path := s.path[tags]; path != "" {
		return path, nil
	}
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "oncegate-chaos-")
		if err != nil {
			return "", err
		}
		s.dir, s.path = dir, map[string]string{}
	}
	path := filepath.Join(s.dir, "oncegate-"+tags)
	build := exec.Command("go", "build", "-tags", tags, "-o", path, "github.com/oncegate/oncegate/cmd/gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the gateway: %w\n%s", err, out)
	}
	s.path[tags] = path
	return path, nil
}

func (s *shelf) remove() error {
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}
