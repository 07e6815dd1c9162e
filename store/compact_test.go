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

// A run passes over what another one has; should that one die, its records are
// not left for good. Nor is what was accepted for later, and ends after a run.
func TestCompactionComesBackForWhatItPassedOver(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		account(t, h, "ann", 100_00)
		var commands []*order.Command
		for i := range 8 {
			commands = append(commands, command(t, "ann", fmt.Sprintf("k%d", i), potsticker(1_00)))
		}
		require.NotContains(t, kinds(submit(t, h, commands...)()), "rejected")
		_, err := h.Accept(t.Context(), batchOf(t, "ann", "later", 2, 1_00))
		require.NoError(t, err)
		h.age(t, 48*time.Hour)
		run := func() Compacted { t.Helper(); return h.compactDay(t, 3) }
		held := 0
		if h.d.skipLocked != "" { // the embedded engine has one writer
			other, err := h.reads.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			for _, key := range []string{"k1", "k4", "k7"} {
				var row string
				require.NoError(t, other.QueryRowContext(t.Context(),
					"SELECT idempotency_key FROM idempotency_records WHERE user_id = 'ann' AND idempotency_key = ? FOR UPDATE", key).Scan(&row))
				held++
			}
			require.Equal(t, Compacted{Emptied: 8 - 3}, run())
			require.NoError(t, other.Rollback())
		}
		if held > 0 {
			require.Equal(t, Compacted{Emptied: 3}, run(), "the other run died")
		} else {
			require.Equal(t, Compacted{Emptied: 8}, run())
		}
		require.Zero(t, run())

		did, err := h.carryOutNext(t.Context(), DeferredOptions{Lease: time.Minute, MaxAttempts: 2})
		require.NoError(t, err)
		require.True(t, did)
		require.Equal(t, Compacted{Emptied: 1}, run(), "it ended after a run had passed it")
		require.Zero(t, run())
	})
}

// What was accepted for later ends while a run goes by: the run sees neither the
// record, which is locked, nor that there will be something to do.
func TestCompactionComesBackForWhatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		account(t, h, "ann", 1_00)
		_, err := h.Accept(t.Context(), batchOf(t, "ann", "later", 2, 99_00))
		require.NoError(t, err)
		h.age(t, 48*time.Hour)
		run := func() Compacted { t.Helper(); return h.compactDay(t, 0) }
		require.NoError(t, h.inTransaction(t.Context(), "end it", waitingFor(userRow("ann")), func(tx *transaction) error {
			p := &pending{cmd: batchOf(t, "ann", "later", 2, 99_00)}
			v := newView()
			if err := tx.readRecords(v, []*pending{p}, h.o.Renderer); err != nil {
				return err
			}
			rec := v.records[p.pair()]
			rec.receipt.State = order.Failed
			rec.receipt.Response = h.o.Renderer.Rejected(rec.operation, order.Rejection{Code: order.InsufficientBalance})
			if err := tx.settleRecords(&writes{settled: []writtenRecord{{"ann", "later", rec}}}); err != nil {
				return err
			}
			require.Zero(t, run(), "it has not ended yet")
			return nil
		}))
		require.Equal(t, Compacted{Removed: 1}, run())
		require.Zero(t, run())
	})
}

// A refusal is kept for as long as any other, however long its request has waited:
// whoever heard it may use a new key, and a late copy must find it.
func TestARefusalOfWhatWaitedIsKeptFromItsEndOn(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		account(t, h, "ann", 10_00)
		run := func() Compacted { t.Helper(); return h.compactDay(t, 0) }
		age := func() {
			t.Helper()
			h.age(t, 48*time.Hour)
			h.exec(t, "DELETE FROM compaction") // which has gone by the times of before
		}
		ends := map[string]func(key string) error{
			"refused": func(string) error {
				_, err := h.carryOutNext(t.Context(), DeferredOptions{Lease: time.Minute, MaxAttempts: 2})
				return err
			},
			"failed": func(key string) error {
				return h.failDeferred(t.Context(), &leased{user: "ann", key: order.Key(key)})
			},
		}
		for key, end := range ends {
			_, err := h.Accept(t.Context(), batchOf(t, "ann", key, 2, 99_00))
			require.NoError(t, err)
			age()
			require.Zero(t, run(), "it has no end yet")
			require.NoError(t, end(key))
			require.Zero(t, run(), "it has just ended")
			r, err := h.Find(t.Context(), "ann", order.Key(key))
			require.NoError(t, err)
			require.Equal(t, order.Failed, r.State)
			age()
			require.Equal(t, Compacted{Removed: 1}, run())
		}
	})
}

// compactDay compacts what is older than a day, in batches of that size; 0 is the
// default's.
func (h *harness) compactDay(t *testing.T, batch int) Compacted {
	t.Helper()
	c, err := h.Compact(t.Context(), CompactOptions{OlderThan: 24 * time.Hour, Batch: batch})
	require.NoError(t, err)
	return c
}
