//go:build linux

package chaos

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// plantedTTL bounds what the faults themselves write.
const plantedTTL = 3 * time.Second

func redisFaults() []fault {
	return []fault{
		{"redis killed", inRedis, func(w *world, _ event) func() {
			w.redis.Kill()
			return w.redis.Restart
		}},
		{"redis frozen", inRedis, func(w *world, _ event) func() {
			w.redis.Stop()
			return w.redis.Cont
		}},
		{"redis restarted", inRedis, func(w *world, _ event) func() {
			w.redis.Restart()
			return func() {}
		}},
		{"redis flushed", inRedis, func(w *world, _ event) func() {
			return repeatedly(10*time.Millisecond, func(ctx context.Context) {
				w.done(ctx, "flush Redis", w.cache.FlushAll(ctx).Err())
			})
		}},
		{"redis full", inRedis, func(w *world, _ event) func() {
			w.configure("maxmemory-policy", "noeviction")
			w.configure("maxmemory", "1")
			return func() { w.configure("maxmemory", "0") }
		}},
		{"redis evicting", inRedis, func(w *world, e event) func() {
			w.configure("maxmemory-policy", []string{"allkeys-random", "volatile-ttl", "volatile-lru"}[e.random%3])
			w.configure("maxmemory", strconv.Itoa(w.memory()))
			return func() { w.configure("maxmemory", "0") }
		}},
		{"redis a replica of nobody", inRedis, func(w *world, _ event) func() {
			be := func(host, port string) {
				w.done(w.t.Context(), "make Redis a replica", w.cache.ReplicaOf(context.Background(), host, port).Err())
			}
			be("127.0.0.1", "1") // where nobody listens
			return func() { be("NO", "ONE") }
		}},
		{"redis entries of another type", inRedis, func(w *world, e event) func() {
			return w.plant(e, func(p redis.Pipeliner, name string, _ *dice) {
				ctx := context.Background()
				p.Del(ctx, name)
				p.RPush(ctx, name, "x")
				p.PExpire(ctx, name, plantedTTL)
			})
		}},
		{"redis entries of garbage", inRedis, func(w *world, e event) func() {
			return w.plant(e, func(p redis.Pipeliner, name string, d *dice) {
				garbage := make([]byte, d.pick(300))
				for i := range garbage {
					garbage[i] = byte(d.pick(256))
				}
				if len(garbage) > 1 && d.one(2) { // as far as the head, it looks like one of ours
					garbage[0], garbage[1] = 1, "PRL"[d.pick(3)]
				}
				p.Set(context.Background(), name, garbage, plantedTTL)
			})
		}},
		{"redis entries swapped", inRedis, func(w *world, e event) func() {
			last := ""
			return w.plant(e, func(p redis.Pipeliner, name string, _ *dice) {
				if last != "" { // somebody's genuine entry under another's key
					p.Copy(context.Background(), last, name, 0, true)
				}
				last = name
			})
		}},
	}
}

// configure changes a setting; a Redis that is started again has its defaults.
func (w *world) configure(name, value string) {
	w.done(w.t.Context(), "change "+name+" of Redis", w.cache.ConfigSet(context.Background(), name, value).Err())
}

// done fails the test when something that a fault consists of was not done, unless
// the context ended.
func (w *world) done(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		w.t.Errorf("to %s: %v", what, err)
	}
}

// memory is what Redis uses now.
func (w *world) memory() int {
	info, err := w.cache.Info(context.Background(), "memory").Result()
	if err != nil {
		return 1
	}
	_, after, _ := strings.Cut(info, "used_memory:")
	value, _, _ := strings.Cut(after, "\r")
	n, err := strconv.Atoi(value)
	if err != nil {
		return 1
	}
	return n
}

// plant writes over some entries again and again.
func (w *world) plant(e event, write func(p redis.Pipeliner, name string, d *dice)) (end func()) {
	d := e.dice()
	return repeatedly(20*time.Millisecond, func(ctx context.Context) {
		names, _, err := w.cache.Scan(ctx, uint64(d.pick(1<<16)), "*", 50).Result()
		if err != nil || len(names) == 0 {
			return
		}
		_, _ = w.cache.TxPipelined(ctx, func(p redis.Pipeliner) error {
			for _, name := range names {
				if d.one(3) {
					write(p, name, d)
				}
			}
			return nil
		})
	})
}
