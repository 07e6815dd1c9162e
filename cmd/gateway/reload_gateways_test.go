package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
)

func TestAChangeIsInForceOnThreeGateways(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		redis := testserver.StartRedis(t)
		c := deployed(t, dsn, redis.Addr)
		gateways := threeGateways(t, c)
		ops, alice := newOperator(t), newCustomer(t, c, "alice")
		for i, ttl := range []time.Duration{48 * time.Hour, time.Hour, 36 * time.Hour} {
			ops.change(gateways[i], "ttl.receipt", strconv.Quote(ttl.String()))
			eventually(t, fmt.Sprintf("%v is not everywhere", ttl), func() bool {
				for _, g := range gateways {
					if fastWindow(t, alice, g) != ttl {
						return false
					}
				}
				return true
			})
			// What clients were told is what Redis does.
			for n, g := range gateways {
				require.Equal(t, http.StatusCreated, alice.post(g, fmt.Sprintf("k-%d-%d", i, n), `{"sku":"x","quantity":1,"amount":"0.01"}`).status)
			}
			require.Equal(t, 3, entriesLiving(t, redis, ttl))
			require.NoError(t, redis.Client(t).FlushAll(t.Context()).Err())
		}
		for _, g := range gateways {
			require.Contains(t, ops.do(g, http.MethodGet, "/admin/v1/config/changes?limit=1", "", "").body, `"version":3`)
			require.InDelta(t, 3, metric(t, g, "oncegate_config_version"), 0)
			require.InDelta(t, 36*3600, metric(t, g, `oncegate_ttl_seconds{setting="ttl.receipt"}`), 0)
		}
	})
}

// entriesLiving counts the entries whose life is about ttl.
func entriesLiving(t *testing.T, redis *testserver.RedisServer, ttl time.Duration) (n int) {
	t.Helper()
	client := redis.Client(t)
	keys, err := client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		left, err := client.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		if left <= ttl && left > ttl-time.Minute {
			n++
		}
	}
	return n
}

// Of operators who change on top of the same version at several gateways, one
// succeeds, and the others are told.
func TestOperatorsAtSeveralGatewaysDoNotUndoEachOther(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		c := deployed(t, dsn, testserver.StartRedis(t).Addr)
		gateways := threeGateways(t, c)
		ops := newOperator(t)
		var done sync.WaitGroup
		statuses := make([]int, 9)
		for i := range statuses {
			done.Go(func() {
				statuses[i] = ops.do(gateways[i%3], http.MethodPut, "/admin/v1/config/limits.burst", fmt.Sprintf(`{"value":%d,"reason":"x"}`, i+1), `"0"`).status
			})
		}
		done.Wait()
		count := map[int]int{}
		for _, s := range statuses {
			count[s]++
		}
		require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusPreconditionFailed: 8}, count)
		// Whoever is refused finds at once what it was refused for, and can go on
		// from there.
		for i, g := range gateways {
			value := strconv.Itoa(30 + i)
			if a := ops.put(g, "limits.burst", value); a.status != http.StatusOK {
				require.Equal(t, http.StatusPreconditionFailed, a.status, a.body)
				ops.change(g, "limits.burst", value)
			}
		}
	})
}

// A change that is right where it is made may be wrong elsewhere: there the
// settings in force stay, and the next change can mend it.
func TestAGatewayRefusesWhatDoesNotFitToItsOwnConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := startLive(t, Live{Sources: &configs.Sources{File: fileOf(t, dir, "")}}, t.Output())
	path := filepath.Join(dir, "other.yaml")
	require.NoError(t, os.WriteFile(path, []byte(yamlOf(dir, "in_progress_grace: 8s")), 0o600))
	other := startLive(t, Live{Sources: &configs.Sources{File: path}}, t.Output())
	ops := newOperator(t)
	ops.change(one, "ttl.in_progress", `"7s"`)
	refused := func() float64 { return metric(t, other, `oncegate_config_refused{source="api"}`) }
	eventually(t, "refused there", func() bool { return refused() == 1 })
	require.InDelta(t, 0, metric(t, other, "oncegate_config_version"), 0)
	s, version := ops.setting(other, "ttl.in_progress")
	require.Equal(t, "10s", s.Value)
	require.Regexp(t, `^"1-`, version, "it is known, so that it can be mended here")

	// A restart of it serves all the same.
	again := startLive(t, Live{Sources: &configs.Sources{File: path}}, t.Output())
	s, _ = ops.setting(again, "ttl.in_progress")
	require.Equal(t, "10s", s.Value)

	ops.change(other, "ttl.in_progress", `"9s"`)
	require.InDelta(t, 0, refused(), 0)
	for _, g := range []*running{one, other, again} {
		eventually(t, "9s everywhere", func() bool {
			s, _ := ops.setting(g, "ttl.in_progress")
			return s.Value == "9s" && metric(t, g, "oncegate_config_version") == 2
		})
	}
}

func TestADatabaseThatIsAwayLeavesTheSettingsInForce(t *testing.T) {
	t.Parallel()
	dsn := migrated(t, testserver.MySQL(t))
	parsed, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	proxy := faultproxy.New(t, parsed.Addr)
	parsed.Addr = proxy.Addr()
	redis := testserver.StartRedis(t)
	near, far := start(t, deployed(t, dsn, redis.Addr)), start(t, deployed(t, parsed.FormatDSN(), redis.Addr))
	ops := newOperator(t)
	ops.change(near, "ttl.receipt", `"2h"`)
	value := func(g *running) string { s, _ := ops.setting(g, "ttl.receipt"); return s.Value }
	eventually(t, "2h", func() bool { return value(far) == "2h" })

	proxy.Refuse()
	proxy.Cut()
	ops.change(near, "ttl.receipt", `"3h"`)
	a := ops.put(far, "ttl.receipt", `"4h"`)
	require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
	require.Equal(t, "2h", value(far))

	proxy.Pass()
	eventually(t, "3h", func() bool { return value(far) == "3h" })
}

// Wrong changes of every kind, and right ones between them, while orders come:
// every order is taken, and nothing of the wrong changes is in force.
func TestWrongChangesUnderLoadDropNoRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := deployed(t, migrated(t, testserver.MySQL(t)), testserver.StartRedis(t).Addr)
	cfg.Users.ProvisionBalance = "1000000.00"
	vars := []string{
		"ONCEGATE_MYSQL__DSN=" + cfg.MySQL.DSN.Reveal(), "ONCEGATE_REDIS__ADDRS=" + cfg.Redis.Addrs[0], "ONCEGATE_REDIS__OP_TIMEOUT=500ms",
		"ONCEGATE_CACHE__MAC_KEY=" + cfg.Cache.MACKey.Reveal(), "ONCEGATE_AUTH__HS256_SECRET=" + cfg.Auth.HS256Secret.Reveal(),
		"ONCEGATE_USERS__PROVISION_BALANCE=1000000.00",
	}
	path := fileOf(t, dir, receipt2h)
	r := startLive(t, Live{Sources: &configs.Sources{File: path, Environ: vars}}, &logged{})
	ops := newOperator(t)

	var taken, seen atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	defer load.Wait()
	end := sync.OnceFunc(func() { close(stop) })
	defer end()
	for w := range 8 {
		customer := newCustomer(t, cfg, fmt.Sprintf("user-%d", w))
		load.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				a, err := customer.try(http.MethodPost, "http://"+r.Addr()+"/api/orders", strconv.Itoa(i/2), `{"sku":"x","quantity":1,"amount":"0.01"}`)
				seen.Add(1)
				if err != nil || a.status != http.StatusCreated {
					t.Errorf("%d %s %v", a.status, a.body, err)
					return
				}
				taken.Add(1)
			}
		})
	}
	more := func() { // so that changes and orders really meet
		target := seen.Load() + 50
		eventually(t, "orders go on", func() bool { return seen.Load() >= target })
	}
	refused := func() bool { return metric(t, r, `oncegate_config_refused{source="file"}`) == 1 }
	wrong := []string{
		"ttl: [", "ttl: {receipt: 9s}", "ttl: {receipt: 2h, in_progress: 1h}", "limits: {rate: 0.001, burst: 0}",
		"http: {max_in_flight: -1}", "idempotency: {reused_status: 200}", "mysql: {wait_timeout: 30s}",
	}
	for i, text := range wrong {
		more()
		fileOf(t, dir, text)
		eventually(t, text, refused)
		for name, value := range map[string]string{
			"ttl.in_progress": `"19s"`, "request_budget": `"1ms"`, "limits.rate": `-1`, "http.max_order_body": `"1"`, "ttl.receipt": `"3h"`,
		} {
			a := ops.put(r, name, value)
			require.Contains(t, []int{http.StatusBadRequest, http.StatusConflict}, a.status, a.body)
		}
		fileOf(t, dir, receipt2h)
		eventually(t, "no longer refused", func() bool { return !refused() })
		ops.change(r, "breaker.open_for", fmt.Sprintf(`"%ds"`, 3+i))
	}
	more()
	end()
	load.Wait()
	require.Equal(t, seen.Load(), taken.Load())
	s, version := ops.setting(r, "ttl.receipt")
	require.Equal(t, "2h", s.Value)
	require.Regexp(t, `^"`+strconv.Itoa(len(wrong))+`-`, version, "the right changes, and no other")
}
