//go:build unix

package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// sampled is how many keys are asked for their own size.
const sampled = 1000

// markMemory measures the mark of a request that is under way. One is taken from
// a request that waits for a row which is locked here; the others are copies of
// it under names as long.
func (s *stage) markMemory(ctx context.Context, d *deployment, sheet *Sheet) error {
	name, value, err := s.catchMark(ctx, d)
	if err != nil {
		return err
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	s.say("  %s marks", grouped(int64(s.c.Keys)))
	return s.weigh(ctx, sheet, "a mark", func() error { return s.copyMark(ctx, name, value, s.c.Keys) })
}

// receiptMemory measures the receipts of orders.
func (s *stage) receiptMemory(ctx context.Context, d *deployment, sheet *Sheet) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	s.say("  %s orders", grouped(int64(s.c.Keys)))
	return s.weigh(ctx, sheet, "a receipt", func() error { return s.each(ctx, d.addr, s.c.Keys, made) })
}

// weigh adds a line about the keys that come into Redis.
func (s *stage) weigh(ctx context.Context, sheet *Sheet, name string, put func() error) error {
	before, err := s.redisMemory(ctx)
	if err != nil {
		return err
	}
	few, err := s.keys(ctx)
	if err != nil {
		return err
	}
	if err := put(); err != nil {
		return err
	}
	after, err := s.settledMemory(ctx)
	if err != nil {
		return err
	}
	n, err := s.redis.DBSize(ctx).Result()
	if err != nil {
		return fmt.Errorf("count the keys of Redis: %w", err)
	}
	n -= int64(len(few))
	if n < 1 {
		return fmt.Errorf("%s: no key came into Redis", name)
	}
	own, err := s.keySizes(ctx, few)
	if err != nil {
		return err
	}
	sheet.add(name, once(float64(n)), once((after-before)/float64(n)), once(own.usage), once(own.name), once(own.value))
	return nil
}

func (s *stage) redisMemory(ctx context.Context) (float64, error) {
	return s.redisNumber(ctx, "memory", "used_memory")
}

// settledMemory is asked for when Redis has moved its keys into the table of
// their final size, which takes it a moment after the last one.
func (s *stage) settledMemory(ctx context.Context) (float64, error) {
	last := 0.0
	for range 40 {
		now, err := s.redisMemory(ctx)
		if err != nil || now == last {
			return now, err
		}
		last = now
		sleepUntil(ctx, time.Now().Add(restTick))
	}
	return last, nil
}

func (s *stage) redisNumber(ctx context.Context, section, field string) (float64, error) {
	info, err := s.redis.Info(ctx, section).Result()
	if err != nil {
		return 0, fmt.Errorf("ask Redis for its %s: %w", section, err)
	}
	_, after, _ := strings.Cut(info, "\n"+field+":")
	text, _, _ := strings.Cut(after, "\r")
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("ask Redis for its %s: %w", field, err)
	}
	return n, nil
}

// keySize is the mean over some keys, in bytes.
type keySize struct{ usage, name, value float64 }

func (s *stage) keySizes(ctx context.Context, without map[string]bool) (mean keySize, err error) {
	n := 0.0
	for scan := s.redis.Scan(ctx, 0, "*", sampled).Iterator(); n < sampled; {
		if !scan.Next(ctx) {
			err = scan.Err()
			break
		}
		key := scan.Val()
		if without[key] {
			continue
		}
		pipe := s.redis.Pipeline()
		usage, value := pipe.MemoryUsage(ctx, key), pipe.StrLen(ctx, key)
		if _, err := pipe.Exec(ctx); errors.Is(err, redis.Nil) || usage.Val() == 0 {
			continue // it went meanwhile
		} else if err != nil {
			return mean, fmt.Errorf("ask Redis for the size of a key: %w", err)
		}
		n++
		mean.usage += float64(usage.Val())
		mean.name += float64(len(key))
		mean.value += float64(value.Val())
	}
	if err != nil || n == 0 {
		return mean, fmt.Errorf("go through the keys of Redis (%v seen): %w", n, err)
	}
	return keySize{mean.usage / n, mean.name / n, mean.value / n}, nil
}

// keys are all keys of Redis. It is for when there are few.
func (s *stage) keys(ctx context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	scan := s.redis.Scan(ctx, 0, "*", sampled).Iterator()
	for scan.Next(ctx) {
		all[scan.Val()] = true
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("go through the keys of Redis: %w", err)
	}
	return all, nil
}

// catchMark holds up an order and returns what is in Redis meanwhile.
func (s *stage) catchMark(ctx context.Context, d *deployment) (name, value string, err error) {
	before, err := s.keys(ctx)
	if err != nil {
		return "", "", err
	}
	tx, err := s.admin.BeginTx(ctx, nil)
	if err != nil {
		return "", "", fmt.Errorf("hold up an order: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after the other one there is nothing to do
	who := s.users[0]
	lock := "SELECT user_id FROM " + d.database + ".users WHERE user_id = ? FOR UPDATE"
	if err := tx.QueryRowContext(ctx, lock, who.User).Scan(new(sql.NullString)); err != nil {
		return "", "", fmt.Errorf("hold up an order: %w", err)
	}
	answered := make(chan error, 1)
	go func() {
		k := &connection{addr: d.addr}
		defer k.close()
		answered <- k.post(ctx, &request{who, "held-up", orderBody})
	}()
	if name, err = s.awaitKey(ctx, before); err == nil {
		value, err = s.redis.Get(ctx, name).Result()
	}
	// Whatever becomes of that order: its mark is what was wanted.
	return name, value, errors.Join(err, tx.Rollback(), <-answered)
}

// awaitKey waits for the only key of Redis that was not there before.
func (s *stage) awaitKey(ctx context.Context, before map[string]bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		now, err := s.keys(ctx)
		if err != nil {
			return "", err
		}
		for key := range now {
			if !before[key] {
				return key, nil
			}
		}
		sleepUntil(ctx, time.Now().Add(5*time.Millisecond))
	}
	return "", fmt.Errorf("no mark came into Redis: %w", ctx.Err())
}

// copyMark puts copies of a mark into Redis.
func (s *stage) copyMark(ctx context.Context, name, value string, n int) error {
	const perTrip = 1000
	digits := len(strconv.Itoa(maxKeys))
	if len(name) < digits {
		return fmt.Errorf("the mark's name %q is too short to be copied", name)
	}
	for from := 0; from < n; from += perTrip {
		pipe := s.redis.Pipeline()
		for i := from; i < min(n, from+perTrip); i++ {
			pipe.Set(ctx, fmt.Sprintf("%s%0*d", name[:len(name)-digits], digits, i), value, time.Hour)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("copy a mark: %w", err)
		}
	}
	return nil
}
