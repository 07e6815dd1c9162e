package faultproxy_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
)

// redisRig is a private Redis behind a proxy.
func redisRig(t *testing.T) (proxy *faultproxy.RedisProxy, via, direct *redis.Client) {
	t.Helper()
	server := testserver.StartRedis(t)
	proxy = faultproxy.NewRedis(t, server.Addr)
	via = redis.NewClient(&redis.Options{
		Addr:                  proxy.Addr(),
		MaxRetries:            -1,
		ContextTimeoutEnabled: true,
		ReadTimeout:           20 * time.Second,
		PoolSize:              1,
	})
	t.Cleanup(func() { require.NoError(t, via.Close()) })
	return proxy, via, server.Client(t)
}

// on has every command of this name meet an action.
func on(proxy *faultproxy.RedisProxy, name string, action faultproxy.Action) {
	proxy.OnCommand(func(c faultproxy.Command) faultproxy.Action {
		if c.Name == name {
			return action
		}
		return faultproxy.Pass
	})
}

func TestRedisProxyPassesEveryTypeOfReplyAndCounts(t *testing.T) {
	t.Parallel()
	proxy, via, _ := redisRig(t)
	ctx := t.Context()
	require.NoError(t, via.HSet(ctx, "h", "a", "1", "b", "\r\n$-1\r\n").Err())
	require.Equal(t, map[string]string{"a": "1", "b": "\r\n$-1\r\n"}, via.HGetAll(ctx, "h").Val())
	require.ErrorIs(t, via.Get(ctx, "none").Err(), redis.Nil)
	require.ErrorContains(t, via.Get(ctx, "h").Err(), "WRONGTYPE")
	require.InDelta(t, 1.5, via.ZAddArgsIncr(ctx, "z", redis.ZAddArgs{Members: []redis.Z{{Score: 1.5, Member: "m"}}}).Val(), 0)
	require.Equal(t, []any{int64(1), []any{"x"}, nil}, via.Eval(ctx, "return {1, {'x'}, false}", nil).Val())
	big := string(make([]byte, 3<<20))
	require.NoError(t, via.Set(ctx, "big", big, 0).Err())
	require.Equal(t, big, via.Get(ctx, "big").Val())

	require.Equal(t, 3, proxy.Seen("GET"))
	require.Equal(t, 1, proxy.Seen("EVAL"))
	require.Equal(t, 1, proxy.Counts()["HSET"])
}

func TestRedisProxyMatchesRepliesInPipelines(t *testing.T) {
	t.Parallel()
	proxy, via, _ := redisRig(t)
	on(proxy, "GET", faultproxy.AnswerError{Message: "LOADING not yet"})
	var commands []redis.Cmder
	commands, err := via.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range 500 {
			p.Incr(t.Context(), "n")
			p.Get(t.Context(), "n")
		}
		return nil
	})
	require.ErrorContains(t, err, "LOADING")
	for i := 0; i < len(commands); i += 2 {
		require.Equal(t, int64(i/2+1), commands[i].(*redis.IntCmd).Val())
		require.EqualError(t, commands[i+1].Err(), "LOADING not yet")
	}
}

func TestSubscriptionsPassTheProxy(t *testing.T) {
	t.Parallel()
	_, via, direct := redisRig(t)
	subscription := via.Subscribe(t.Context(), "news")
	defer func() { require.NoError(t, subscription.Close()) }()
	_, err := subscription.Receive(t.Context())
	require.NoError(t, err)
	for _, text := range []string{"one", "two"} {
		require.NoError(t, direct.Publish(t.Context(), "news", text).Err())
		message, err := subscription.ReceiveMessage(t.Context())
		require.NoError(t, err)
		require.Equal(t, text, message.Payload)
	}
}

func TestCutBeforeSetLeavesNothing(t *testing.T) {
	t.Parallel()
	proxy, via, direct := redisRig(t)
	on(proxy, "SET", faultproxy.CutBefore)
	require.Error(t, via.Set(t.Context(), "k", "v", 0).Err())
	require.Zero(t, direct.Exists(t.Context(), "k").Val())
}

func TestCutInAPipelineLosesOnlyWhatFollows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action faultproxy.Action
		stored int64
	}{
		"before":  {faultproxy.CutBefore, 0},
		"swallow": {faultproxy.Swallow, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, _, direct := redisRig(t)
			on(proxy, "SET", c.action)
			// By hand: go-redis gives every command of a broken pipeline the same error.
			conn := dial(t, proxy.Addr())
			send(t, conn, "INCR n\r\nSET k v\r\nINCR n\r\n")
			require.Equal(t, ":1\r\n", receive(t, conn))
			requireReset(t, conn)
			require.Equal(t, c.stored, direct.Exists(t.Context(), "k").Val())
		})
	}
}

func TestSwallowedSetIsStored(t *testing.T) {
	t.Parallel()
	proxy, via, direct := redisRig(t)
	on(proxy, "SET", faultproxy.Swallow)
	require.Error(t, via.Set(t.Context(), "k", "v", 0).Err())
	require.Equal(t, "v", direct.Get(t.Context(), "k").Val())
	require.Equal(t, 1, proxy.Seen("SET"))
}

func TestSilentlySwallowedSetIsStoredAndNothingFollows(t *testing.T) {
	t.Parallel()
	proxy, via, direct := redisRig(t)
	on(proxy, "SET", faultproxy.SwallowSilently)
	ended := make(chan error, 1)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		_, err := via.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "k", "v", 0)
			p.Incr(ctx, "n")
			return nil
		})
		ended <- err
	}()
	require.Eventually(t, func() bool { return direct.Exists(t.Context(), "k", "n").Val() == 2 }, patience, 5*time.Millisecond)
	require.Empty(t, ended)
	proxy.Cut()
	require.Error(t, within(t, ended))
}

func TestLateSetIsAppliedAfterItsClientHasGone(t *testing.T) {
	t.Parallel()
	proxy, _, direct := redisRig(t)
	release := make(chan struct{})
	on(proxy, "SET", faultproxy.DelayForward{Until: release})
	conn := dial(t, proxy.Addr())
	send(t, conn, "SET k v\r\n")
	require.Eventually(t, func() bool { return proxy.Seen("SET") == 1 }, patience, 5*time.Millisecond)
	require.NoError(t, conn.Close())
	require.Zero(t, direct.Exists(t.Context(), "k").Val())
	close(release)
	require.Eventually(t, func() bool { return direct.Exists(t.Context(), "k").Val() == 1 }, patience, 5*time.Millisecond)
}

func TestDelayedRedisReplyComesAfterItsEffect(t *testing.T) {
	t.Parallel()
	proxy, via, direct := redisRig(t)
	release := make(chan struct{})
	on(proxy, "SET", faultproxy.DelayReply{Until: release})
	ended := make(chan error, 1)
	go func() { ended <- via.Set(t.Context(), "k", "v", 0).Err() }()
	require.Eventually(t, func() bool { return direct.Exists(t.Context(), "k").Val() == 1 }, patience, 5*time.Millisecond)
	require.Empty(t, ended)
	close(release)
	require.NoError(t, within(t, ended))
}

func TestRedisErrorIsAnsweredInTheServersPlace(t *testing.T) {
	t.Parallel()
	proxy, via, direct := redisRig(t)
	on(proxy, "SET", faultproxy.AnswerError{Message: "READONLY You can't write against a read only replica."})
	require.ErrorContains(t, via.Set(t.Context(), "k", "v", 0).Err(), "READONLY")
	require.NoError(t, via.Ping(t.Context()).Err())
	require.Zero(t, direct.Exists(t.Context(), "k").Val())
}
