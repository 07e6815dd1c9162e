//go:build linux

package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/loadtest/decimal"
	"github.com/oncegate/oncegate/loadtest/drive"
)

const (
	gatewayCount = 3
	userCount    = 60 // at least

	markTTL       = 6 * time.Second  // ttl.in_progress
	sessionLife   = 12 * time.Second // mysql.wait_timeout
	webhookSecret = "whsec_Y2hhb3MgY2hhb3MgY2hhb3MgY2hhb3MgY2hhb3M="
)

// scale is how large a deployment is.
type scale struct {
	users int
	cents int64 // of each account at first
	stock int   // of each SKU that is limited, at first
	// settings are those that differ, by environment variable.
	settings map[string]string
	// also is an address beside loopback at which the servers listen.
	also string
	// ownClocks gives each server a clock that can be moved, and each gateway another
	// time zone. The clocks of gateways can always be moved.
	ownClocks bool
	// ownDisk gives the database a disk that can lose its power.
	ownDisk bool
	// ownBalancer runs the balancer as a process, with open files of its own.
	ownBalancer bool
}

// scarce is a deployment in which the busiest user runs out of money, and both
// limited SKUs run out.
func scarce() scale { return scale{users: userCount, cents: 20_000_00, stock: 400} }

// limited are SKUs of the traffic's menu that have a stock.
func limited() []string { return []string{"tea", "soup"} }

// world is one deployment: three gateways behind a balancer, each with links of
// its own to the one database and the one Redis.
type world struct {
	scale
	t        *testing.T
	engine   string
	database *testserver.SQLServer
	redis    *testserver.RedisServer
	sites    []*site
	front    string        // address of the balancer
	dsn      string        // of an administrator, straight to the server
	admin    *sql.DB       // the same, opened
	shop     *mysql.Config // of the gateways
	cache    *redis.Client
	people   []drive.Identity

	databaseClock, redisClock *testserver.Clock // nil unless they have their own
	disk                      *testserver.Disk  // as well

	atRest int        // goroutines of a gateway that has just started
	clocks clockJumps // of gateways
}

// site is one gateway and its links.
type site struct {
	*gateway
	sql   *faultproxy.MySQLProxy
	redis *faultproxy.RedisProxy
}

func newWorld(t *testing.T, engine string, program string) *world {
	t.Helper()
	return newWorldOf(t, scarce(), engine, program)
}

func newWorldOf(t *testing.T, of scale, engine string, program string) *world {
	t.Helper()
	w := &world{scale: of, t: t, engine: engine}
	w.startServers()
	w.dsn = w.database.Database(t)
	migrate(t, program, w.dsn)
	w.admin = opened(t, w.dsn)
	w.admin.SetMaxOpenConns(8)
	w.admin.SetConnMaxLifetime(10 * time.Second) // a server that was killed leaves dead ones
	w.cache = w.redis.Client(t)
	w.shop = w.createShop()
	var addrs []string
	for i := range gatewayCount {
		s := &site{sql: faultproxy.NewMySQL(t, w.database.Addr), redis: faultproxy.NewRedis(t, w.redis.Addr)}
		shop := w.shop.Clone()
		shop.Addr = s.sql.Addr()
		settings := hasty(shop.FormatDSN(), s.redis.Addr())
		maps.Copy(settings, of.settings)
		if of.ownClocks {
			settings["TZ"] = [gatewayCount]string{"America/St_Johns", "Asia/Kathmandu", "Pacific/Apia"}[i]
		}
		s.gateway = newGateway(t, program, settings)
		w.sites = append(w.sites, s)
		addrs = append(addrs, s.addr)
	}
	w.balance(addrs)
	for _, s := range w.sites {
		s.start()
	}
	for _, s := range w.sites {
		s.ready()
	}
	var err error
	w.atRest, err = w.sites[0].goroutines()
	require.NoError(t, err)
	w.provide()
	return w
}

// startServers starts the database and Redis.
func (w *world) startServers() {
	w.t.Helper()
	mariaDB := w.engine == "MariaDB"
	if w.ownClocks {
		start := testserver.StartMySQLWithClock
		if mariaDB {
			start = testserver.StartMariaDBWithClock
		}
		w.database, w.databaseClock = start(w.t)
		w.redis, w.redisClock = testserver.StartRedisWithClock(w.t)
		return
	}
	if w.ownDisk {
		start := testserver.StartMySQLOnDisk
		if mariaDB {
			start = testserver.StartMariaDBOnDisk
		}
		w.database, w.disk = start(w.t)
		w.redis = testserver.StartRedis(w.t)
		return
	}
	var sqlArgs, redisArgs []string
	if w.also != "" {
		sqlArgs = []string{"--bind-address=127.0.0.1," + w.also}
		redisArgs = []string{"--bind", "127.0.0.1", w.also, "--protected-mode", "no"}
	}
	start := testserver.StartMySQLNode
	if mariaDB {
		start = testserver.StartMariaDBNode
	}
	w.database, w.redis = start(w.t, sqlArgs...), testserver.StartRedis(w.t, redisArgs...)
}

// createShop makes the account that the gateways use: one that a read-only
// server is read-only for.
func (w *world) createShop() *mysql.Config {
	w.t.Helper()
	c, err := mysql.ParseDSN(w.dsn)
	require.NoError(w.t, err)
	for _, statement := range []string{"CREATE USER 'shop'@'127.0.0.1'", "GRANT ALL ON `" + c.DBName + "`.* TO 'shop'@'127.0.0.1'"} {
		_, err := w.admin.ExecContext(w.t.Context(), statement)
		require.NoError(w.t, err)
	}
	c.User = "shop"
	return c
}

// hasty are settings whose limits are as short as they may be.
func hasty(dsn, redis string) map[string]string {
	s := settings(dsn, redis)
	maps.Copy(s, map[string]string{
		"ONCEGATE_REDIS__OP_TIMEOUT":      "100ms",
		"ONCEGATE_MYSQL__CONNECT_TIMEOUT": "1s",
		"ONCEGATE_MYSQL__READ_TIMEOUT":    "2s",
		"ONCEGATE_MYSQL__WAIT_TIMEOUT":    sessionLife.String(),
		"ONCEGATE_IN_PROGRESS_GRACE":      "1s",
		"ONCEGATE_REQUEST_BUDGET":         "4s",
		"ONCEGATE_MAX_WAIT":               "5s",
		"ONCEGATE_BATCHES__ASYNC_LEASE":   "9s",
		"ONCEGATE_TTL__IN_PROGRESS":       markTTL.String(),
		"ONCEGATE_HTTP__READ_TIMEOUT":     "4s",
		"ONCEGATE_HTTP__WRITE_TIMEOUT":    "11s",
		"ONCEGATE_SHUTDOWN_GRACE":         "15s",
		"ONCEGATE_BREAKER__OPEN_FOR":      "500ms",
		"ONCEGATE_WEBHOOKS__SECRET":       webhookSecret,
		"ONCEGATE_LOG__LEVEL":             "error",
	})
	return s
}

// provide opens the accounts and fills the stock.
func (w *world) provide() {
	for u := range w.users {
		user := fmt.Sprintf("user-%d", u)
		w.people = append(w.people, drive.Identity{User: user, Token: token(w.t, user)})
		w.sites[0].provide("/admin/v1/users/"+user, fmt.Sprintf(`{"balance":%q}`, decimal.Text(w.cents)))
	}
	for _, sku := range limited() {
		w.sites[0].provide("/admin/v1/stock/"+sku, fmt.Sprintf(`{"available":%d}`, w.stock))
	}
}

// revive starts whatever is not running, as a supervisor does.
func (w *world) revive() {
	for _, s := range w.sites {
		if !s.running() {
			s.start()
		}
	}
}

// heal ends all faults, whatever their own ends did, and waits until every
// gateway is ready.
func (w *world) heal() {
	w.t.Helper()
	for _, s := range w.sites {
		s.sql.OnQuery(nil)
		s.redis.OnCommand(nil)
		s.sql.Pass()
		s.redis.Pass()
	}
	w.revive()
	var waiting sync.WaitGroup
	for _, s := range w.sites {
		waiting.Go(func() {
			if err := s.awaitReady(); err != nil {
				w.t.Errorf("a gateway does not recover: %v\n%s", err, s.log.Tail(20))
			}
		})
	}
	waiting.Wait()
}

// exec runs an administrator's statement; the error is the caller's to judge.
func (w *world) exec(ctx context.Context, statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := w.admin.ExecContext(ctx, statement, args...)
	return err
}

// restore runs a statement that ends a fault, until it succeeds.
func (w *world) restore(statement string, args ...any) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	var err error
	for tick := every(ctx, 50*time.Millisecond); tick(); {
		if err = w.exec(ctx, statement, args...); err == nil {
			return
		}
	}
	w.t.Errorf("%s: %v", statement, err)
}
