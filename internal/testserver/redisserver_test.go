//go:build unix

package testserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

func TestSharedRedisAnswers(t *testing.T) {
	t.Parallel()
	server := testserver.Redis(t)
	require.Same(t, server, testserver.Redis(t))
	require.Regexp(t, `^([789]|\d\d)\.\d+\.\d+$`, server.Version)
	require.Equal(t, "PONG", server.Client(t).Ping(t.Context()).Val())
}

func TestPrivateRedisTakesArguments(t *testing.T) {
	t.Parallel()
	client := testserver.StartRedis(t, "--maxmemory", "3mb").Client(t)
	require.Equal(t, "3145728", client.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"])
}

func TestFrozenRedisAnswersNothingUntilItGoesOn(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	client := server.Client(t)
	require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())

	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.Error(t, client.Get(ctx, "k").Err())
	server.Cont()
	require.Equal(t, "v", client.Get(t.Context(), "k").Val())
}

func TestKilledRedisComesBackEmpty(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	client := server.Client(t)
	require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())

	server.Kill()
	require.ErrorContains(t, client.Ping(t.Context()).Err(), "refused")
	server.Restart()
	require.Zero(t, client.Exists(t.Context(), "k").Val())
}
