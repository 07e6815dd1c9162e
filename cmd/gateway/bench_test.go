package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/store"
)

// BenchmarkHTTP measures requests over loopback against a durable MySQL and a
// real Redis, client included. Compare the lines with each other.
func BenchmarkHTTP(b *testing.B) {
	dsn := testserver.MySQL(b).Database(b)
	require.NoError(b, store.Migrate(b.Context(), store.Options{DSN: dsn}))
	redis := testserver.StartRedis(b)
	boot := func(b *testing.B, change func(*configs.Config)) (url, bearer string) {
		c := embedded(b.TempDir())
		c.MySQL.DSN, c.Redis.Addrs = configs.NewSecret(dsn), []string{redis.Addr}
		c.Cache.MACKey = configs.NewSecret("a key of sixteen bytes or more")
		c.Auth.HS256Secret = configs.NewSecret("a secret of thirty-two bytes or more")
		c.Users.ProvisionBalance = "999999999999.99"
		change(&c)
		app, err := New(b.Context(), c, slog.New(slog.DiscardHandler))
		require.NoError(b, err)
		done := make(chan error, 1)
		ctx := b.Context() // ends before the clean-up runs
		go func() { done <- app.Run(ctx) }()
		b.Cleanup(func() { require.NoError(b, <-done) })
		secret, err := signingSecret(&c)
		require.NoError(b, err)
		token, err := mint(&c, secret, tokenRequest{user: "ann", scopes: []string{"orders"}, ttl: 1 << 40})
		require.NoError(b, err)
		return "http://" + app.Addr() + "/api/orders", "Bearer " + token
	}
	var next atomic.Int64
	send := func(b *testing.B, url, bearer string, key func() string, replayed bool) {
		transport := &http.Transport{MaxIdleConnsPerHost: 256}
		client := &http.Client{Transport: transport}
		defer transport.CloseIdleConnections()
		b.SetParallelism(32)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				r, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(potsticker))
				r.Header.Set("Authorization", bearer)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Idempotency-Key", key())
				resp, err := client.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusCreated || (resp.Header.Get("Idempotent-Replayed") != "") != replayed {
					b.Error(resp.Status, resp.Header)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	}
	for _, c := range []struct {
		name     string
		change   func(*configs.Config)
		fresh    bool
		replayed bool
	}{
		{"Created", func(*configs.Config) {}, true, false},
		{"ReplayedFromRedis", func(c *configs.Config) { c.Cache.ProcessTier = false }, false, true},
		{"ReplayedInProcess", func(*configs.Config) {}, false, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			url, bearer := boot(b, c.change)
			fixed := fmt.Sprintf("fixed-%d", next.Add(1))
			key := func() string { return fixed }
			if c.fresh {
				key = func() string { return fmt.Sprintf("k-%d-%d", b.N, next.Add(1)) }
			} else { // the first one makes the order
				r, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(potsticker))
				r.Header.Set("Authorization", bearer)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Idempotency-Key", fixed)
				resp, err := http.DefaultClient.Do(r)
				require.NoError(b, err)
				require.NoError(b, resp.Body.Close())
				require.Equal(b, http.StatusCreated, resp.StatusCode)
			}
			send(b, url, bearer, key, c.replayed)
		})
	}
}
