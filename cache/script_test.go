package cache

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// forgetful is a Redis that knows no script by its hash.
type forgetful struct{ limits []time.Duration }

type noScriptError struct{}

func (noScriptError) Error() string { return "NOSCRIPT No matching script." }
func (noScriptError) RedisError()   {}

func (f *forgetful) send(_ context.Context, limit time.Duration, cmd redis.Cmder) error {
	f.limits = append(f.limits, limit)
	if cmd.Name() == "evalsha" {
		return noScriptError{}
	}
	return nil
}

// What is sent with less than the whole limit takes it from all that are sent
// together with it.
func TestAReleaseIsOneCommandWithTheWholeLimit(t *testing.T) {
	t.Parallel()
	redis := &forgetful{}
	require.NoError(t, compareAndDelete(t.Context(), patient, redis, "name", []byte("mark")))
	require.Equal(t, []time.Duration{patient}, redis.limits)
}
