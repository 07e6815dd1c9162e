package cache

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// compareAndDeleteScript deletes the mark of its owner and nobody else's. It is
// plain: it names no engine in a first line, for which a Redis that is out of
// memory would refuse it, and knows no command that is younger than Redis 7.0.
const compareAndDeleteScript = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

// compareAndDelete sends the script itself, which is hardly longer than its hash:
// a Redis that restarted has forgotten all hashes, and a second command would
// have what the first left of the limit, and so would all that are sent with it.
func compareAndDelete(ctx context.Context, limit time.Duration, p pipe, name string, mark []byte) error {
	if flawReleaseAnybodys {
		return p.send(ctx, limit, redis.NewCmd(ctx, "del", name))
	}
	return p.send(ctx, limit, redis.NewCmd(ctx, "eval", compareAndDeleteScript, 1, name, mark))
}
