//go:build unix

package bench

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/loopback"
	"github.com/oncegate/oncegate/loadtest/drive"
)

const (
	testPatience = 30 * time.Second
	testTick     = 5 * time.Millisecond
)

// serving serves a baseline for the length of a test.
func serving(t *testing.T, o BaselineOptions) (addr string) {
	t.Helper()
	port, err := loopback.Reserve()
	require.NoError(t, err)
	o.Listen = port.Addr()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ServeBaseline(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, port.Release())
	})
	return o.Listen
}

// ask sends one order of a user.
func ask(t *testing.T, addr, user string) (x answer) {
	t.Helper()
	who := drive.Identity{User: user}
	require.Eventually(t, func() bool {
		w := newPoster(addr).worker(t.Context(), func() (drive.Identity, string) { return who, knownKey(who) },
			func(got *answer) error { x = *got; return nil })
		defer w.close()
		return w.step(t.Context()) == nil
	}, testPatience, testTick)
	return x
}

func TestBareBaselineAnswersWithAnOrder(t *testing.T) {
	t.Parallel()
	x := ask(t, serving(t, BaselineOptions{Kind: BaselineBare}), "ann")
	require.NoError(t, made(&x))
	require.Error(t, replayed(&x))
	require.Equal(t, orderAnswer, string(x.body))
}

func TestRedisBaselineAnswersWithTheReceipt(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	require.NoError(t, keepReceipts(t.Context(), client, []drive.Identity{{User: "ann"}}))
	addr := serving(t, BaselineOptions{Kind: BaselineRedis, Redis: server.Addr(), Connections: 4})
	x := ask(t, addr, "ann")
	require.NoError(t, made(&x))
	require.Equal(t, orderAnswer, string(x.body))
	x = ask(t, addr, "bob")
	require.ErrorContains(t, made(&x), "status 502", "what is not there is not answered")
}

func TestUnknownBaselineIsRefused(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, ServeBaseline(t.Context(), BaselineOptions{Kind: "fast"}), `unknown baseline "fast"`)
}
