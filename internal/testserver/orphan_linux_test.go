package testserver_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// orphanEnv makes the test below play the test process that is killed.
const orphanEnv = "ONCEGATE_TESTSERVER_ORPHAN"

func TestServersDieWithAKilledTestProcess(t *testing.T) {
	t.Parallel()
	if os.Getenv(orphanEnv) != "" {
		beKilled(t)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestServersDieWithAKilledTestProcess$", "-test.v")
	child.Env = append(os.Environ(), orphanEnv+"=1", "CI=true")
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	var addr string
	for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
		_, addr, _ = strings.Cut(lines.Text(), "listening on ")
	}
	require.NotEmpty(t, addr, "the child started no server")
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer func() { require.NoError(t, client.Close()) }()
	require.NoError(t, client.Ping(t.Context()).Err())

	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() != nil }, time.Minute, 20*time.Millisecond)
}

func beKilled(t *testing.T) {
	t.Log("listening on " + testserver.StartRedis(t).Addr)
	select {}
}
