package main

import (
	"database/sql"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/store"
)

// connections counts those of all clients of a Redis.
func connections(t *testing.T, client *redis.Client) int {
	t.Helper()
	list, err := client.ClientList(t.Context()).Result()
	require.NoError(t, err)
	return strings.Count(list, "\n")
}

// What is left open would be there for as long as the process is.
func TestWhoHasStoppedReadingIsNotConnectedToTheBroker(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, cfg *configs.Config) *App{
		"serve": func(t *testing.T, cfg *configs.Config) *App {
			t.Helper()
			a, err := New(t.Context(), *cfg, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			return a
		},
		"consume": func(t *testing.T, cfg *configs.Config) *App {
			t.Helper()
			require.NoError(t, store.Migrate(t.Context(), storeOptions(cfg)))
			a := &App{log: slog.New(slog.DiscardHandler), grace: cfg.ShutdownGrace}
			require.NoError(t, a.openConsumer(t.Context(), cfg))
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := testserver.StartRedis(t)
			client := broker.Client(t)
			cfg := embedded(t.TempDir())
			cfg.Messages.Broker, cfg.Messages.Addrs = "redis", []string{broker.Addr}
			before := connections(t, client)
			a := open(t, &cfg)
			t.Cleanup(func() { require.NoError(t, a.Close()) })
			eventually(t, "it never reads", func() bool {
				groups, err := client.XInfoGroups(t.Context(), cfg.Messages.Topic).Result()
				return err == nil && len(groups) == 1 && connections(t, client) > before
			})
			require.NoError(t, a.Close())
			eventually(t, "it stays connected", func() bool { return connections(t, client) == before })
			runtime.KeepAlive(a) // or the collector would close what it forgot
		})
	}
}

// Until the message in hand is dealt with, whoever probes a consumer is told that
// it stops.
func TestAConsumerThatStopsSaysSoUntilTheMessageInHandIsDealtWith(t *testing.T) {
	t.Parallel()
	broker := testserver.StartRedis(t)
	vars := payments(t, broker)
	dir, ok := strings.CutPrefix(vars[0], "ONCEGATE_DATA_DIR=")
	require.True(t, ok)
	// The embedded database waits for its one writer as long as a reply may take.
	c := consume(t, append(vars, "ONCEGATE_MYSQL__READ_TIMEOUT=9s", "ONCEGATE_REQUEST_BUDGET=10s",
		"ONCEGATE_TTL__IN_PROGRESS=12s", "ONCEGATE_HTTP__WRITE_TIMEOUT=21s", "ONCEGATE_MYSQL__WAIT_TIMEOUT=22s"))
	eventually(t, "it is never ready", func() bool { status, _ := c.ask("/readyz"); return status == http.StatusOK })

	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "oncegate.db")+"?_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	const working = `go_sql_in_use_connections{db_name="ledger"} 1`
	client := broker.Client(t)
	require.NoError(t, client.XAdd(t.Context(), &redis.XAddArgs{Stream: "payments", Values: map[string]any{
		"message_id": "evt_1",
		"payload":    `{"type":"payment.succeeded","data":{"order_id":"` + order.NewID(time.Now()).String() + `","amount":"19.90","provider_reference":"pi_1"}}`,
	}}).Err())
	eventually(t, "the message is never in hand", func() bool {
		groups, err := client.XInfoGroups(t.Context(), "payments").Result()
		if err != nil || len(groups) != 1 || groups[0].Pending != 1 { // until then, a connection in use serves something else
			return false
		}
		_, body := c.ask("/metrics")
		return strings.Contains(body, working)
	})

	c.stop()
	eventually(t, "it does not say that it stops", func() bool {
		status, body := c.ask("/readyz")
		return status == http.StatusServiceUnavailable && body == `{"status":"draining"}`
	})
	status, _ := c.ask("/livez")
	require.Equal(t, http.StatusOK, status, "and is not killed for it")
	_, err = db.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
}

// The signal itself: it has a gateway read its settings again, and must not stop a
// consumer beside it.
func TestAHangupDoesNotEndAConsumer(t *testing.T) {
	t.Parallel()
	aloneWithHangup(t)
	broker := testserver.StartRedis(t)
	c := consume(t, payments(t, broker))
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	eventually(t, "it says what the signal does", func() bool { return strings.Contains(c.log.String(), "SIGHUP changes nothing here") })
	require.NoError(t, broker.Client(t).XAdd(t.Context(), &redis.XAddArgs{
		Stream: "payments", Values: map[string]any{"message_id": "evt_1", "payload": "no payment"},
	}).Err())
	eventually(t, "it still reads", func() bool {
		_, body := c.ask("/metrics")
		return strings.Contains(body, `oncegate_consumer_parked_total{reason="undecodable"} 1`)
	})
}
