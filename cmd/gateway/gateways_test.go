package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/store"
)

// onServers runs a test on a migrated database of each server.
func onServers(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	for name, server := range map[string]func(testing.TB) *testserver.SQLServer{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, migrated(t, server(t)))
		})
	}
}

func migrated(t *testing.T, server *testserver.SQLServer) string {
	t.Helper()
	dsn := server.Database(t)
	require.NoError(t, store.Migrate(t.Context(), store.Options{DSN: dsn}))
	return dsn
}

// deployed is the configuration of one of several gateways.
func deployed(t *testing.T, dsn, redis string) configs.Config {
	t.Helper()
	c := embedded(t.TempDir())
	c.MySQL.DSN = configs.NewSecret(dsn)
	c.Redis.Addrs = []string{redis}
	c.Cache.MACKey = configs.NewSecret("a key of sixteen bytes or more")
	c.Auth.HS256Secret = configs.NewSecret("a secret of thirty-two bytes or more")
	c.Users.ProvisionBalance = "1000.00"
	return c
}

func threeGateways(t *testing.T, c configs.Config) []*running {
	t.Helper()
	gateways := make([]*running, 3)
	for i := range gateways {
		gateways[i] = start(t, c)
	}
	return gateways
}

// race sends one request of each gateway's share at the same moment.
func race(gateways []*running, c *customer, n int, key func(i int) string, body string) []answer {
	answers := make([]answer, n)
	var ready, done sync.WaitGroup
	barrier := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-barrier
			a, err := c.try(http.MethodPost, "http://"+gateways[i%len(gateways)].Addr()+"/api/orders", key(i), body)
			if err != nil {
				a.body = err.Error()
			}
			answers[i] = a
		})
	}
	ready.Wait()
	close(barrier)
	done.Wait()
	return answers
}

func orders(t *testing.T, dsn, user string) (n int) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders WHERE user_id = ?", user).Scan(&n))
	return n
}

func TestOneKeyOverThreeGatewaysIsOneOrder(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(t *testing.T, r *testserver.RedisServer) (end func()){
		"RedisUp":   func(*testing.T, *testserver.RedisServer) func() { return func() {} },
		"RedisDown": func(_ *testing.T, r *testserver.RedisServer) func() { r.Kill(); return func() {} },
		"RedisFlushed": func(t *testing.T, r *testserver.RedisServer) func() {
			client := r.Client(t)
			ctx, cancel := context.WithCancel(t.Context())
			var flushing sync.WaitGroup
			flushed := 0
			flushing.Go(func() {
				for ctx.Err() == nil {
					if client.FlushAll(ctx).Err() == nil {
						flushed++
					}
				}
			})
			return func() {
				cancel()
				flushing.Wait()
				require.Positive(t, flushed)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, dsn string) {
				redis := testserver.StartRedis(t)
				c := deployed(t, dsn, redis.Addr)
				gateways := threeGateways(t, c)
				end := trouble(t, redis)
				defer end()
				for round := range 5 {
					user := fmt.Sprintf("user-%d", round)
					customer := newCustomer(t, c, user)
					answers := race(gateways, customer, 64, func(int) string { return "k" }, potsticker)
					first, created := "", 0
					for _, a := range answers {
						switch a.status {
						case http.StatusCreated:
							if !a.replayed() {
								created++
							}
							if first == "" {
								first = a.body
							}
							require.Equal(t, first, a.body, "every 2xx has the same bytes")
						case http.StatusConflict:
							require.Contains(t, a.body, "REQUEST_IN_PROGRESS")
							require.NotEmpty(t, a.header.Get("Retry-After"))
						default:
							t.Fatalf("%d %s", a.status, a.body)
						}
					}
					require.Equal(t, 1, created)
					require.Equal(t, 1, orders(t, dsn, user))
					for _, g := range gateways {
						a := customer.post(g, "k", potsticker)
						require.Equal(t, http.StatusCreated, a.status, a.body)
						require.True(t, a.replayed())
						require.Equal(t, first, a.body)
					}
				}
			})
		})
	}
}

func TestBalanceForTenMakesTenOrdersOverThreeGateways(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		redis := testserver.StartRedis(t)
		c := deployed(t, dsn, redis.Addr)
		c.Users.ProvisionBalance = "398.00"
		gateways := threeGateways(t, c)
		customer := newCustomer(t, c, "ann")
		answers := race(gateways, customer, 50, func(i int) string { return "k" + strconv.Itoa(i) }, potsticker)
		count := map[int]int{}
		for _, a := range answers {
			count[a.status]++
		}
		require.Equal(t, map[int]int{http.StatusCreated: 10, http.StatusUnprocessableEntity: 40}, count)
		require.Equal(t, 10, orders(t, dsn, "ann"))
	})
}

func metricsOf(t *testing.T, g *running) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.AdminAddr()+"/metrics", http.NoBody)
	require.NoError(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(b)
}

// In the normal flow no transaction is ever chosen as a deadlock's victim,
// whatever keys and users meet on however many gateways.
func TestNormalFlowHasNoDeadlocks(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		redis := testserver.StartRedis(t)
		c := deployed(t, dsn, redis.Addr)
		gateways := threeGateways(t, c)
		var work sync.WaitGroup
		for w := range 24 {
			customer := newCustomer(t, c, fmt.Sprintf("user-%d", w%5))
			work.Go(func() {
				for i := range 25 {
					key := fmt.Sprintf("k-%d", (i*7+w)%40)
					body := fmt.Sprintf(`{"sku":"sku-%d","quantity":1,"amount":"0.01","external_order_no":"n-%s"}`, i%3, key)
					a, err := customer.try(http.MethodPost, "http://"+gateways[(w+i)%3].Addr()+"/api/orders", key, body)
					if err != nil || a.status >= 500 {
						t.Errorf("%d %s %v", a.status, a.body, err)
					}
				}
			})
		}
		work.Wait()
		for _, g := range gateways {
			metrics := metricsOf(t, g)
			require.Contains(t, metrics, "oncegate_ledger_faults_total{fault=\"conflict\"} 0\n")
			require.Contains(t, metrics, "oncegate_ledger_faults_total{fault=\"duplicate\"} 0\n")
		}
	})
}

// A failover that lost the last commits: what Redis remembers of the old
// server is confirmed before it is replayed, so an answer and a read agree.
func TestReceiptOfALostOrderIsNotReplayed(t *testing.T) {
	t.Parallel()
	primary, replica := testserver.StartMySQL(t), testserver.StartMySQL(t)
	dsn := migrated(t, primary)
	parsed, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	name := parsed.DBName
	other, err := mysql.ParseDSN(replica.Database(t))
	require.NoError(t, err)
	admin, err := sql.Open("mysql", other.FormatDSN())
	require.NoError(t, err)
	_, err = admin.ExecContext(t.Context(), "CREATE DATABASE `"+name+"`")
	require.NoError(t, err)
	require.NoError(t, admin.Close())
	other.DBName = name
	require.NoError(t, store.Migrate(t.Context(), store.Options{DSN: other.FormatDSN()}))

	proxy := faultproxy.New(t, parsed.Addr)
	parsed.Addr = proxy.Addr()
	redis := testserver.StartRedis(t)
	c := deployed(t, parsed.FormatDSN(), redis.Addr)
	g := start(t, c)
	customer := newCustomer(t, c, "ann")
	first := customer.post(g, "k", potsticker)
	require.Equal(t, http.StatusCreated, first.status, first.body)

	proxy.Redirect(other.Addr)
	proxy.Cut()
	var retry answer
	require.Eventually(t, func() bool { // until the gateway has noticed
		retry = customer.post(g, "k", potsticker)
		return retry.status == http.StatusCreated && retry.body != first.body
	}, time.Minute, 50*time.Millisecond)
	var made struct {
		OrderID string `json:"order_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(retry.body), &made))
	require.Equal(t, http.StatusOK, customer.get(g, "/api/orders/"+made.OrderID).status)
	again := customer.post(g, "k", potsticker)
	require.True(t, again.replayed())
	require.Equal(t, retry.body, again.body)
}

// A gateway that is stopped in the middle of the traffic answers what it took:
// every 2xx is in the database, and nothing is half done.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		redis := testserver.StartRedis(t)
		c := deployed(t, dsn, redis.Addr)
		stays, goes := start(t, c), start(t, c)
		var mu sync.Mutex
		acknowledged := map[string]string{}
		var work sync.WaitGroup
		started := make(chan struct{}, 1000)
		for w := range 16 {
			user := fmt.Sprintf("user-%d", w)
			customer := newCustomer(t, c, user)
			work.Go(func() {
				for i := range 40 {
					key := fmt.Sprintf("k-%d", i)
					target := goes
					for {
						a, err := customer.try(http.MethodPost, "http://"+target.Addr()+"/api/orders", key, `{"sku":"x","quantity":1,"amount":"0.01"}`)
						started <- struct{}{}
						if err == nil && a.status == http.StatusCreated {
							mu.Lock()
							acknowledged[user+" "+key] = a.body
							mu.Unlock()
							break
						}
						if err == nil && a.status < 500 && !strings.Contains(a.body, "REQUEST_IN_PROGRESS") {
							t.Errorf("%d %s", a.status, a.body)
							return
						}
						target = stays
					}
				}
			})
		}
		for range 100 {
			<-started
		}
		go func() {
			for range started {
			}
		}()
		require.NoError(t, goes.stopped())
		work.Wait()
		close(started)
		s, err := store.Open(t.Context(), store.Options{DSN: dsn, Renderer: gateway.NewRenderer("")})
		require.NoError(t, err)
		report, err := s.Audit(t.Context(), store.AuditOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		require.EqualValues(t, 16*40, report.Orders)
		require.Len(t, acknowledged, 16*40)
		require.NoError(t, s.Close(t.Context()))
		for at, body := range acknowledged {
			user, key, _ := strings.Cut(at, " ")
			a := newCustomer(t, c, user).post(stays, key, `{"sku":"x","quantity":1,"amount":"0.01"}`)
			require.Equal(t, body, a.body)
			require.True(t, a.replayed())
			if strings.HasSuffix(key, "-9") {
				break
			}
		}
	})
}
