package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// BenchmarkOverload has 400 customers ask a database that decides 160 orders a second,
// with a second of patience each; whoever is not served comes again a second later.
// Served in time is what counts: an order that is made after its customer has left is
// told of as a replay.
func BenchmarkOverload(b *testing.B) {
	dsn := testserver.MySQL(b).Database(b)
	require.NoError(b, Migrate(b.Context(), Options{DSN: dsn}))
	c, err := mysql.ParseDSN(dsn)
	require.NoError(b, err)
	proxy := faultproxy.NewMySQL(b, c.Addr)
	c.Addr = proxy.Addr()
	o := Options{DSN: c.FormatDSN(), Workers: 1, MaxBatch: 16}
	patient(&o)
	h := openHarness(b, o)
	const customers, seconds = 400, 15
	for i := range customers {
		require.NoError(b, h.SetBalance(b.Context(), fmt.Sprintf("user-%d", i), order.MaxBalance))
	}
	proxy.OnQuery(func(q string) faultproxy.Action {
		if strings.HasPrefix(q, "COMMIT") {
			return faultproxy.DelayReply{For: 100 * time.Millisecond}
		}
		return faultproxy.Pass
	})
	var run int
	for b.Loop() {
		run++
		var inTime, replayed, refused, left atomic.Int64
		ctx, cancel := context.WithTimeout(b.Context(), seconds*time.Second)
		var all sync.WaitGroup
		for i := range customers {
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					c, err := order.NewCommand(order.CreateOrder, fmt.Sprintf("user-%d", i), order.Key(fmt.Sprintf("k-%d-%d", run, n)), []order.Line{potsticker(1)})
					if err != nil {
						b.Error(err)
						return
					}
					insist(ctx, h, c, &inTime, &replayed, &refused, &left)
				}
			})
		}
		all.Wait()
		cancel()
		for unit, n := range map[string]*atomic.Int64{"in-time/s": &inTime, "replayed/s": &replayed, "refused/s": &refused, "too-late/s": &left} {
			b.ReportMetric(float64(n.Load())/seconds, unit)
		}
	}
	proxy.OnQuery(nil)
}

// insist sends a command until it is decided.
func insist(ctx context.Context, h *harness, c *order.Command, inTime, replayed, refused, left *atomic.Int64) {
	for ctx.Err() == nil {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		d, err := h.Decide(patience, c)
		cancel()
		switch {
		case err == nil && d.Kind == order.Created:
			inTime.Add(1)
			return
		case err == nil:
			replayed.Add(1)
			return
		case errors.Is(err, order.ErrOverloaded):
			refused.Add(1)
		default:
			left.Add(1)
		}
		pause(ctx, time.Second)
	}
}
