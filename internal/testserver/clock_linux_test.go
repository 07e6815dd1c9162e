package testserver

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAServerGoesByItsOwnClock(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) (*SQLServer, *Clock){"MySQL": StartMySQLWithClock, "MariaDB": StartMariaDBWithClock} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, clock := start(t)
			requireMoves(t, clock, s.Restart, func(ctx context.Context) int64 {
				db, err := openSQL(s.RootDSN)
				require.NoError(t, err)
				defer func() { require.NoError(t, db.Close()) }()
				var now int64
				require.NoError(t, db.QueryRowContext(ctx, "SELECT UNIX_TIMESTAMP()").Scan(&now))
				return now
			})
		})
	}
	t.Run("Redis", func(t *testing.T) {
		t.Parallel()
		r, clock := StartRedisWithClock(t)
		client := r.Client(t)
		require.NoError(t, client.Set(t.Context(), "k", "v", 30*time.Minute).Err())
		requireMoves(t, clock, func() {}, func(ctx context.Context) int64 {
			now, err := client.Time(ctx).Result()
			require.NoError(t, err)
			return now.Unix()
		})
		clock.Move(time.Hour)
		require.Eventually(t, func() bool {
			n, err := client.Exists(t.Context(), "k").Result()
			return err == nil && n == 0
		}, time.Minute, 10*time.Millisecond, "what lives half an hour is gone after one")
	})
}

// requireMoves moves a clock forth and back by hours, far more than a slow
// machine needs to look at it.
func requireMoves(t *testing.T, clock *Clock, restart func(), now func(context.Context) int64) {
	t.Helper()
	for _, by := range []time.Duration{-3 * time.Hour, -9 * time.Hour, 0} {
		clock.Move(by)
		// Redis looks at its clock once per round of events.
		require.Eventually(t, func() bool {
			off := time.Duration(now(t.Context())-time.Now().Unix()) * time.Second
			return (off - by).Abs() < time.Hour
		}, time.Minute, 10*time.Millisecond, strconv.Itoa(int(by.Hours())))
		restart()
	}
}
