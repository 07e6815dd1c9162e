package store

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// age makes all records older.
func (h *harness) age(t *testing.T, by time.Duration) {
	t.Helper()
	text := fmt.Sprintf("UPDATE idempotency_records SET created_at = created_at - INTERVAL %d SECOND", int(by.Seconds()))
	if h.d.name == "sqlite" {
		text = fmt.Sprintf("UPDATE idempotency_records SET created_at = created_at - %d", by.Milliseconds())
	}
	_, err := h.reads.ExecContext(t.Context(), text)
	require.NoError(t, err)
}

func TestCompactionKeepsEveryKey(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		account(t, h, "ann", 10_00)
		var commands []*order.Command
		for i := range 9 {
			commands = append(commands, command(t, "ann", fmt.Sprintf("k%d", i), order.Line{SKU: "x", Quantity: 1, Amount: 1_00, ExternalOrderNo: fmt.Sprintf("n%d", i)}))
		}
		dear := command(t, "ann", "dear", potsticker(99_00))
		first := submit(t, h, append(commands, dear)...)()
		h.age(t, 48*time.Hour)
		fresh := submit(t, h, command(t, "ann", "fresh", potsticker(1_00)))()
		require.Equal(t, "created", kinds(fresh))
		o, err := h.Orders(t.Context(), "ann", order.ID{}, 10)
		require.NoError(t, err)
		_, err = h.Apply(t.Context(), paid(o[1].ID, "m", "r", 1_00))
		require.NoError(t, err)

		// Two instances share the work.
		var wg sync.WaitGroup
		var mu sync.Mutex
		var sum Compacted
		for range 2 {
			wg.Go(func() {
				done, err := h.Compact(t.Context(), CompactOptions{OlderThan: 24 * time.Hour, Batch: 2, Pause: time.Millisecond})
				mu.Lock()
				defer mu.Unlock()
				sum.Emptied += done.Emptied
				sum.Removed += done.Removed
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, Compacted{Emptied: 9, Removed: 1}, sum)
		again, err := h.Compact(t.Context(), CompactOptions{OlderThan: 24 * time.Hour})
		require.NoError(t, err)
		require.Zero(t, again)

		replays := submit(t, h, commands...)()
		for i := range replays {
			require.NoError(t, replays[i].err)
			require.Equal(t, order.Replayed, replays[i].decision.Kind)
			require.Equal(t, string(first[i].decision.Receipt.Response.Body), string(replays[i].decision.Receipt.Response.Body))
			require.Equal(t, first[i].decision.Receipt.Response, replays[i].decision.Receipt.Response)
		}
		other := submit(t, h, command(t, "ann", "k0", potsticker(3_00)))()
		require.Equal(t, "reused", kinds(other))
		r, err := h.Find(t.Context(), "ann", "k3")
		require.NoError(t, err)
		require.Equal(t, first[3].decision.Receipt.Response, r.Response)
		n, err := h.count(t.Context(), "SELECT COUNT(*) FROM idempotency_records WHERE response_body IS NOT NULL")
		require.NoError(t, err)
		require.Equal(t, 1, n, "only the fresh one keeps its answer")
		report, err := h.Audit(t.Context(), AuditOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
	})
}
