package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// BenchmarkLedger measures created orders on a durable MySQL, by the bound of
// the group. Compare the lines with each other: the machine decides the rest.
func BenchmarkLedger(b *testing.B) {
	dsn := testserver.MySQL(b).Database(b)
	require.NoError(b, Migrate(b.Context(), Options{DSN: dsn}))
	var run atomic.Int64
	for _, batch := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			h := openHarness(b, Options{DSN: dsn, MaxBatch: batch})
			const users = 256
			for i := range users {
				require.NoError(b, h.SetBalance(b.Context(), fmt.Sprintf("user-%d", i), order.MaxBalance))
			}
			n := run.Add(1)
			var next atomic.Int64
			b.SetParallelism(64)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := next.Add(1)
					c, err := order.NewCommand(order.CreateOrder, fmt.Sprintf("user-%d", i%users), order.Key(fmt.Sprintf("k-%d-%d", n, i)), []order.Line{potsticker(1)})
					if err != nil {
						b.Error(err)
						return
					}
					ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
					d, err := h.Decide(ctx, c)
					cancel()
					if err != nil || d.Kind != order.Created {
						b.Error(d.Kind, err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "orders/s")
		})
	}
}
