//go:build linux

package chaos

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/crashpoint"
)

// dormitory is what all gateways that sleep share, and what was seen there.
type dormitory struct {
	program, dsn, redis string
	db                  *sql.DB
	cache               *redis.Client
	marks, waits        atomic.Int64
}

// bed is one user with one order, and two gateways to order it at.
type bed struct {
	*dormitory
	t                          *testing.T
	ending                     ending
	locked                     bool // while it sleeps the user's row is held
	sleeper, other             *gateway
	prefix, user, bearer, body string
	said                       []answer // by the two of them
}

// drowsy are settings with which a mark lives for as short as it may where the
// database is given the time that it needs on a busy machine.
func drowsy(dsn, redis string) map[string]string {
	s := settings(dsn, redis)
	maps.Copy(s, map[string]string{
		"ONCEGATE_MYSQL__READ_TIMEOUT": "3s",
		"ONCEGATE_REQUEST_BUDGET":      "3100ms",
		"ONCEGATE_TTL__IN_PROGRESS":    "3200ms",
	})
	return s
}

// forgetful are those of a gateway whose sessions the database soon ends. Without
// them they outlive the mark by far.
func forgetful() map[string]string {
	return map[string]string{
		"ONCEGATE_HTTP__READ_TIMEOUT":  "1s",
		"ONCEGATE_MAX_WAIT":            "1s",
		"ONCEGATE_HTTP__WRITE_TIMEOUT": "4500ms",
		"ONCEGATE_MYSQL__WAIT_TIMEOUT": "5s",
	}
}

// bed makes one whose sleeper freezes at the point.
func (d *dormitory) bed(t *testing.T, e ending, point crashpoint.Point, untilDecided bool, number int) *bed {
	t.Helper()
	b := &bed{dormitory: d, t: t, ending: e, locked: e.locked(point), prefix: rand.Text()} // the Redis is shared
	b.user = fmt.Sprintf("%s-%s-%t-%d", e.name, point, untilDecided, number)
	b.bearer = token(t, b.user)
	b.body = fmt.Sprintf(`{"sku":%q,"quantity":2,"amount":"39.80","external_order_no":"n"}`, b.user)
	both := drowsy(d.dsn, d.redis)
	both["ONCEGATE_CACHE__PREFIX"] = b.prefix
	b.other, b.sleeper = newGateway(t, d.program, both), newGateway(t, d.program, both)
	if untilDecided {
		maps.Copy(b.sleeper.settings, forgetful())
	}
	b.other.start()
	b.sleeper.start(crashpoint.FreezeVariable + "=" + string(point))
	b.other.ready()
	b.sleeper.ready()
	b.provide("stock", `{"available":5}`)
	if e.balance != "" {
		b.provide("users", fmt.Sprintf(`{"balance":%q}`, e.balance))
	}
	return b
}

// provide writes what bears the user's name, until it is written.
func (b *bed) provide(what, body string) {
	b.t.Helper()
	b.await("nothing can be provided", func() bool {
		a, err := ask(http.MethodPut, "http://"+b.other.admin+"/admin/v1/"+what+"/"+b.user, "", "", body)
		return err == nil && a.status == http.StatusOK
	})
}

// stopped reports whether the process is stopped, as the kernel has it.
func (g *gateway) stopped() bool {
	g.mu.Lock()
	pid := g.cmd.Process.Pid
	g.mu.Unlock()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(g.t, err)
	name := strings.LastIndex(string(stat), ")") // it may have anything in it
	return strings.HasPrefix(string(stat[name+1:]), " T ")
}

// forgotten waits until Redis knows of no request that is being decided, and
// reports whether it did.
func (b *bed) forgotten() (seen bool) {
	b.t.Helper()
	b.await("a mark stays", func() bool {
		marks, err := b.marksThere()
		seen = seen || marks > 0
		return err == nil && marks == 0
	})
	return seen
}

func (b *bed) marksThere() (marks int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	scan := b.cache.Scan(ctx, 0, b.prefix+":*", 500).Iterator()
	for scan.Next(ctx) {
		value, err := b.cache.Get(ctx, scan.Val()).Result()
		switch {
		case errors.Is(err, redis.Nil): // it has just expired
		case err != nil:
			return marks, err
		case strings.HasPrefix(value, "\x01P"):
			marks++
		}
	}
	return marks, scan.Err()
}

// settled asks until the answer is final.
func (b *bed) settled(g *gateway, key, body string) (last answer) {
	b.t.Helper()
	b.await("no final answer", func() bool {
		a, err := g.order(b.bearer, key, body)
		if err != nil {
			return false
		}
		last = a
		if key == "k" {
			b.said = append(b.said, a)
		}
		return a.decided()
	})
	return last
}

func (b *bed) await(otherwise string, condition func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	for tick := every(ctx, 20*time.Millisecond); tick(); {
		if condition() {
			return
		}
	}
	b.t.Fatalf("%s in %v; what was said: %v", otherwise, readyTime, b.said)
}
