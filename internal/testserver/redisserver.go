//go:build unix

package testserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisServer is a running Redis. A shared one is shared with all its keys:
// tests use names of their own, and those that flush start a private one.
type RedisServer struct {
	server
}

// Client returns a plain client that is closed at the end of the test.
func (r *RedisServer) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	client := redis.NewClient(r.options())
	tb.Cleanup(func() {
		if err := client.Close(); err != nil {
			tb.Errorf("testserver: close Redis client: %v", err)
		}
	})
	return client
}

func (r *RedisServer) options() *redis.Options {
	return &redis.Options{Addr: r.Addr, DialTimeout: 5 * time.Second, ContextTimeoutEnabled: true}
}

func newRedisServer(addr string) *RedisServer {
	r := &RedisServer{server{Addr: addr}}
	r.ping = r.askVersion
	return r
}

// askVersion doubles as the ping: a server that tells its version is ready.
func (r *RedisServer) askVersion(ctx context.Context) error {
	options := r.options()
	options.PoolSize, options.MaxRetries = 1, -1
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }() // only read
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	_, after, _ := strings.Cut(info, "redis_version:")
	answer, _, _ := strings.Cut(after, "\r")
	r.Version = answer
	return nil
}
