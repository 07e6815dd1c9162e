package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
)

// A master of Redis that was given up and the one that was promoted both take
// writes, each from another gateway: a key has two owners, and one order. Then the
// old one is lost with all that it knew.
func TestTwoMastersOfRedisMakeOneOrder(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		former, promoted := testserver.StartRedis(t), testserver.StartRedis(t)
		link := faultproxy.New(t, former.Addr)
		c := deployed(t, dsn, link.Addr())
		c.Cache.ProcessTier = false
		c.Breaker.Failures = 1_000_000 // never: a gateway whose Redis stood still for a moment would leave it alone for a round
		stays := start(t, c)
		other := c
		other.Redis.Addrs = []string{promoted.Addr}
		moved := start(t, other)
		customer := newCustomer(t, c, "ann")
		masters := map[*running]*redis.Client{stays: former.Client(t), moved: promoted.Client(t)}
		const rounds = 5
		first := make([]string, rounds)
		key := func(round int) string { return fmt.Sprint("k", round) }
		for round := range rounds {
			created := 0
			for _, a := range race([]*running{stays, moved}, customer, 32, func(int) string { return key(round) }, potsticker) {
				if a.status == http.StatusConflict {
					require.Contains(t, a.body, "REQUEST_IN_PROGRESS")
					continue
				}
				require.Equal(t, http.StatusCreated, a.status, a.body)
				if !a.replayed() {
					created++
				}
				if first[round] == "" {
					first[round] = a.body
				}
				require.Equal(t, first[round], a.body, "every 2xx has the same bytes")
			}
			require.Equal(t, 1, created)
			require.Equal(t, round+1, orders(t, dsn, "ann"))
			for g, master := range masters {
				eventually(t, "both masters know the key", func() bool {
					if len(names(t, master)) == round+1 {
						return true
					}
					_, _ = customer.try(http.MethodPost, "http://"+g.Addr()+"/api/orders", key(round), potsticker) // one that stood still is told now
					return false
				})
			}
		}

		link.Redirect(promoted.Addr)
		link.Cut()
		former.Kill()
		for round := range rounds {
			a := customer.post(stays, key(round), potsticker)
			require.Equal(t, http.StatusCreated, a.status, a.body)
			require.True(t, a.replayed())
			require.Equal(t, first[round], a.body)
		}
		require.Equal(t, rounds, orders(t, dsn, "ann"))
	})
}
