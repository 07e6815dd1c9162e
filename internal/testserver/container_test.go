//go:build unix

package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/loopback"
)

// A program plays Docker; see testdata/bin. What the real one makes of these
// commands is not proven here.
func TestContainerIsStartedFrozenKilledRestartedAndRemoved(t *testing.T) {
	if len(onPath([]string{"redis-server"})) == 0 {
		Demand(t, fmt.Errorf("the player of Docker: redis-server: %w", ErrMissing))
	}
	notes := t.TempDir()
	bin, err := filepath.Abs("testdata/bin")
	require.NoError(t, err)
	t.Setenv("FAKE_DOCKER", notes)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	ctx := t.Context()
	require.NoError(t, dockerAnswers(ctx))

	port, err := loopback.Reserve()
	require.NoError(t, err)
	var l launcher
	c := newContainer(&l, redisEngine(), port, []string{"--maxmemory", "1mb"})
	server := newRedisServer(port.Addr())
	require.NoError(t, startReady(ctx, c, server.ping))
	require.NotEmpty(t, server.Version)

	require.NoError(t, c.freeze(ctx))
	require.Error(t, pingOnce(ctx, server.ping))
	require.NoError(t, c.thaw(ctx))
	require.Eventually(t, func() bool { return pingOnce(ctx, server.ping) == nil }, time.Minute, 10*time.Millisecond)
	require.NoError(t, c.kill(ctx))
	require.NoError(t, c.kill(ctx), "a dead one stays dead")
	require.NoError(t, startReady(ctx, c, server.ping))
	require.NoError(t, c.terminate(ctx))
	require.Equal(t, "last words\n", c.lastWords())
	require.NoError(t, c.discard(ctx))
	l.stop()

	calls, err := os.ReadFile(filepath.Join(notes, "calls"))
	require.NoError(t, err)
	require.Equal(t, []string{
		"info",
		"create --name NAME --label oncegate-testserver --publish " + port.Addr() + ":6379 redis:7" +
			" redis-server --protected-mode no --save  --appendonly no --maxmemory 1mb",
		"start --attach --sig-proxy NAME",
		"pause NAME",
		"unpause NAME",
		"kill NAME",
		"start --attach --sig-proxy NAME",
		"stop -t 20 NAME",
		"logs --tail 25 NAME",
		"rm --force --volumes NAME",
	}, strings.Split(strings.TrimSpace(strings.ReplaceAll(string(calls), c.name, "NAME")), "\n"))
}
