package store

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// traffic decides single orders of many users, one at a time each, until ctx
// ends, and returns how long each took.
func traffic(ctx context.Context, tb testing.TB, h *harness, clients int, tag string) []time.Duration {
	tb.Helper()
	var mu sync.Mutex
	var all []time.Duration
	var work sync.WaitGroup
	for client := range clients {
		user := fmt.Sprintf("single-%d", client)
		require.NoError(tb, h.SetBalance(tb.Context(), user, order.MaxBalance))
		work.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				c, err := order.NewCommand(order.CreateOrder, user, order.Key(fmt.Sprintf("%s-%d", tag, i)), []order.Line{{SKU: "x", Quantity: 1, Amount: 1}})
				if err != nil {
					tb.Error(err)
					return
				}
				started := time.Now()
				dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
				_, err = h.Decide(dctx, c)
				cancel()
				if err != nil {
					tb.Error(err)
					return
				}
				mu.Lock()
				all = append(all, time.Since(started))
				mu.Unlock()
			}
		})
	}
	work.Wait()
	slices.Sort(all)
	return all
}

func reportQuantiles(b *testing.B, sorted []time.Duration) {
	b.Helper()
	for _, q := range []int{50, 99} {
		b.ReportMetric(float64(sorted[(len(sorted)-1)*q/100].Microseconds())/1000, fmt.Sprintf("ms-p%d", q))
	}
	b.ReportMetric(float64(sorted[len(sorted)-1].Microseconds())/1000, "ms-max")
	b.ReportMetric(float64(len(sorted)), "orders")
}

// BenchmarkSinglesBesideBatches shows what batches of 500 rows cost the single
// orders beside them: compare the two lines.
func BenchmarkSinglesBesideBatches(b *testing.B) {
	dsn := testserver.MySQL(b).Database(b)
	require.NoError(b, Migrate(b.Context(), Options{DSN: dsn}))
	for _, batches := range []int{0, 1} {
		b.Run(fmt.Sprintf("batch-clients=%d", batches), func(b *testing.B) {
			h := openHarness(b, Options{DSN: dsn})
			ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
			defer cancel()
			var work sync.WaitGroup
			done := 0
			for client := range batches {
				user := fmt.Sprintf("batch-%d", client)
				require.NoError(b, h.SetBalance(b.Context(), user, order.MaxBalance))
				work.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						lines := make([]order.Line, 500)
						for row := range lines {
							lines[row] = order.Line{SKU: "x", Quantity: 1, Amount: 1, ExternalOrderNo: fmt.Sprintf("%d-%d-%d", b.N, i, row)}
						}
						c, err := order.NewCommand(order.CreateBatch, user, order.Key(fmt.Sprintf("b-%d-%d", b.N, i)), lines)
						if err != nil {
							b.Error(err)
							return
						}
						dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
						_, err = h.Decide(dctx, c)
						cancel()
						if err != nil {
							b.Error(err)
							return
						}
						done++
					}
				})
			}
			sorted := traffic(ctx, b, h, 16, fmt.Sprintf("s-%d-%d", batches, b.N))
			work.Wait()
			reportQuantiles(b, sorted)
			b.ReportMetric(float64(done), "batches")
		})
	}
}

// BenchmarkCompactionBesideTraffic compacts ONCEGATE_BENCH_RECORDS (100000)
// records while single orders are decided: compare the two lines.
func BenchmarkCompactionBesideTraffic(b *testing.B) {
	records := 100_000
	if s := os.Getenv("ONCEGATE_BENCH_RECORDS"); s != "" {
		var err error
		records, err = strconv.Atoi(s)
		require.NoError(b, err)
	}
	dsn := testserver.MySQL(b).Database(b)
	require.NoError(b, Migrate(b.Context(), Options{DSN: dsn}))
	h := openHarness(b, Options{DSN: dsn})
	fill(b, h, records)
	b.Run("alone", func(b *testing.B) {
		ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
		defer cancel()
		reportQuantiles(b, traffic(ctx, b, h, 16, fmt.Sprintf("a-%d", b.N)))
	})
	b.Run("compacting", func(b *testing.B) {
		_, err := h.reads.ExecContext(b.Context(), "DELETE FROM compaction")
		require.NoError(b, err)
		ctx, cancel := context.WithCancel(b.Context())
		var done Compacted
		started := time.Now()
		go func() {
			defer cancel()
			var err error
			if done, err = h.Compact(ctx, CompactOptions{OlderThan: 24 * time.Hour}); err != nil {
				b.Error(err)
			}
		}()
		sorted := traffic(ctx, b, h, 16, fmt.Sprintf("c-%d", b.N))
		reportQuantiles(b, sorted)
		b.ReportMetric(float64(done.Emptied)/time.Since(started).Seconds(), "records/s")
		var name string
		var longest float64
		require.NoError(b, h.reads.QueryRowContext(b.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_time_max'").Scan(&name, &longest))
		b.ReportMetric(longest, "ms-longest-lock-wait")
	})
}

// fill writes records that are two days old, with their orders.
func fill(b *testing.B, h *harness, records int) {
	b.Helper()
	const chunk = 1000
	account := func(i int) string { return fmt.Sprintf("old-%d", i%1000) }
	for i := range min(records, 1000) {
		require.NoError(b, h.SetBalance(b.Context(), account(i), order.MaxBalance))
	}
	old := time.Now().Add(-48 * time.Hour)
	body := make([]byte, 220)
	for from := 0; from < records; from += chunk {
		w := &writes{now: instant{old}}
		for i := from; i < min(from+chunk, records); i++ {
			id := order.NewID(old)
			key := order.Key(fmt.Sprintf("old-%d", i))
			w.orders = append(w.orders, order.Order{ID: id, UserID: account(i), Key: key, Line: order.Line{SKU: "x", Quantity: 1, Amount: 1}, Status: order.Pending})
			w.stocked = append(w.stocked, false)
			w.records = append(w.records, writtenRecord{account(i), key, &record{
				operation: order.CreateOrder, orderID: id,
				receipt: order.Receipt{State: order.Succeeded, Response: order.Response{Status: 201, ContentType: "application/json", Body: body}},
			}})
		}
		require.NoError(b, h.inTransaction(b.Context(), "fill", waitingFor(), func(t *transaction) error { return t.write(w) }))
	}
}
