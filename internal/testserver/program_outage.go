//go:build unix

package testserver

import (
	"context"
	"fmt"
)

// Outage kills a Redis of [LaunchRedis] and returns what brings it back, empty,
// at the same address. Until then connections to it are refused. Both wait for
// what they are named after, until ctx ends.
func (r *RedisServer) Outage(ctx context.Context) (end func(ctx context.Context) error, err error) {
	if err := r.instance.kill(ctx); err != nil {
		return nil, fmt.Errorf("kill Redis: %w", err)
	}
	return func(ctx context.Context) error {
		if err := startReady(ctx, r.instance, r.ping); err != nil {
			return fmt.Errorf("bring Redis back: %w", err)
		}
		return nil
	}, nil
}
