package store

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

func batchOf(t *testing.T, user, key string, rows int, amount order.Amount) *order.Command {
	t.Helper()
	lines := make([]order.Line, rows)
	for i := range lines {
		lines[i] = order.Line{SKU: "x", Quantity: 1, Amount: amount, ExternalOrderNo: fmt.Sprintf("%s-%d", key, i)}
	}
	c, err := order.NewCommand(order.CreateBatch, user, order.Key(key), lines)
	require.NoError(t, err)
	return c
}

// A batch for later leaves a record, whatever becomes of other refusals: its answer
// must not ask to try the key again.
func TestARefusedBatchForLaterIsNeverForgotten(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn, ForgetRejections: true})
		account(t, h, "ann", 5_00)
		c := batchOf(t, "ann", "dear", 1, 6_00)
		_, err := h.Accept(t.Context(), c)
		require.NoError(t, err)
		require.NoError(t, h.CarryOut(t.Context()))
		r, err := h.Find(t.Context(), "ann", "dear")
		require.NoError(t, err)
		require.Equal(t, order.Failed, r.State)
		require.NotContains(t, string(r.Response.Body), "forgotten")
	})
}

func TestDeferredRequestIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		account(t, h, "ann", 100_00)
		good, dear := batchOf(t, "ann", "good", 3, 1_00), batchOf(t, "ann", "dear", 3, 99_00)
		for _, c := range []*order.Command{good, dear, good} {
			d, err := h.Accept(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, order.InProgress, d.Kind)
		}
		d, err := h.Accept(t.Context(), batchOf(t, "ann", "good", 4, 1_00))
		require.NoError(t, err)
		require.Equal(t, order.Reused, d.Kind)
		_, err = h.Accept(t.Context(), batchOf(t, "nobody", "k", 1, 1_00))
		require.ErrorIs(t, err, order.ErrUnknownUser)
		waiting := submit(t, h, good)()
		require.Equal(t, "in_progress", kinds(waiting))
		r, err := h.Find(t.Context(), "ann", "good")
		require.NoError(t, err)
		require.Equal(t, order.Processing, r.State)

		// A worker took one of them and died: its lease is over at once.
		_, err = h.lease(t.Context(), time.Millisecond)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { h.RunDeferred(ctx, DeferredOptions{Poll: 5 * time.Millisecond}) })
		}
		require.Eventually(t, func() bool {
			n, err := h.count(t.Context(), "SELECT COUNT(*) FROM deferred_requests")
			return err == nil && n == 0
		}, ample, 10*time.Millisecond)
		cancel()
		wg.Wait()

		require.Equal(t, "replayed replayed", kinds(submit(t, h, good, dear)()))
		for key, want := range map[order.Key]order.State{"good": order.Succeeded, "dear": order.Failed} {
			r, err := h.Find(t.Context(), "ann", key)
			require.NoError(t, err)
			require.Equal(t, want, r.State)
			require.NotEmpty(t, r.Response.Body)
		}
		n, err := h.CountOrders(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, 3, n)
		report, err := h.Audit(t.Context(), AuditOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
	})
}

func TestDeferredRequestThatCannotSucceedEndsAsFailed(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		account(t, h, "ann", 100_00)
		c := batchOf(t, "ann", "k", 2, 1_00)
		_, err := h.Accept(t.Context(), c)
		require.NoError(t, err)
		// The deployment is at fault: a column is too short for what it must hold.
		_, err = h.reads.ExecContext(t.Context(), "ALTER TABLE orders MODIFY sku VARCHAR(64) NOT NULL, ADD CONSTRAINT ck_refuse CHECK (quantity > 1)")
		require.NoError(t, err)
		for range 3 {
			_, err = h.carryOutNext(t.Context(), DeferredOptions{Lease: time.Minute, MaxAttempts: 3})
			if err == nil {
				break
			}
			require.ErrorIs(t, err, order.ErrInternal)
			_, err = h.reads.ExecContext(t.Context(), "UPDATE deferred_requests SET lease_until = created_at")
			require.NoError(t, err)
		}
		r, err := h.Find(t.Context(), "ann", "k")
		require.NoError(t, err)
		require.Equal(t, order.Failed, r.State)
		n, err := h.CountOrders(t.Context(), "ann")
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// As another version of the program may have written it.
func TestDeferredRequestThatCannotBeReadHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"no JSON": "{", "no command": `{"operation":"orders.create"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEngines(t, func(t *testing.T, dsn string) {
				h := openHarness(t, Options{DSN: dsn})
				account(t, h, "ann", 100_00)
				_, err := h.Accept(t.Context(), batchOf(t, "ann", "bad", 2, 1_00))
				require.NoError(t, err)
				_, err = h.reads.ExecContext(t.Context(), "UPDATE deferred_requests SET content = ?", []byte(content))
				require.NoError(t, err)
				_, err = h.Accept(t.Context(), batchOf(t, "ann", "good", 2, 1_00))
				require.NoError(t, err)

				o := DeferredOptions{Lease: time.Minute, MaxAttempts: 2}
				_, err = h.carryOutNext(t.Context(), o)
				require.ErrorIs(t, err, errUnreadable)
				_, err = h.carryOutNext(t.Context(), o)
				require.NoError(t, err, "the one behind it")
				require.Equal(t, "replayed", kinds(submit(t, h, batchOf(t, "ann", "good", 2, 1_00))()))

				_, err = h.reads.ExecContext(t.Context(), "UPDATE deferred_requests SET lease_until = created_at")
				require.NoError(t, err)
				_, err = h.carryOutNext(t.Context(), o)
				require.NoError(t, err)
				r, err := h.Find(t.Context(), "ann", "bad")
				require.NoError(t, err)
				require.Equal(t, order.Failed, r.State)
				require.Contains(t, string(r.Response.Body), string(order.ExecutionFailed))
			})
		})
	}
}

// The clock of the database went back, or another server took over whose clock is
// behind.
func TestADeferredRequestDoesNotWaitForAClockThatWentBack(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		account(t, h, "ann", 100_00)
		_, err := h.Accept(t.Context(), batchOf(t, "ann", "k", 2, 1_00))
		require.NoError(t, err)
		o := DeferredOptions{Lease: time.Hour}
		_, err = h.lease(t.Context(), o.Lease)
		require.NoError(t, err)
		worked, err := h.carryOutNext(t.Context(), o)
		require.NoError(t, err)
		require.False(t, worked, "it is another's")

		_, err = h.reads.ExecContext(t.Context(), "UPDATE deferred_requests SET lease_until = ?", h.d.instant(time.Now().Add(25*time.Hour)))
		require.NoError(t, err)
		worked, err = h.carryOutNext(t.Context(), o)
		require.NoError(t, err)
		require.True(t, worked)
		require.Equal(t, "replayed", kinds(submit(t, h, batchOf(t, "ann", "k", 2, 1_00))()))
	})
}

// A worker looks for requests several times a second, whether there are any or not.
func TestAnOutageIsToldOnceByWhoLooksForDeferredRequests(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		var log bytes.Buffer
		h, proxy := behindProxy(t, dsn, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var looks atomic.Int32
		proxy.OnQuery(func(q string) faultproxy.Action {
			if !strings.Contains(q, "FROM deferred_requests") {
				return faultproxy.Pass
			}
			if looks.Add(1) == 20 {
				cancel()
			}
			return faultproxy.CutBefore
		})
		h.RunDeferred(ctx, DeferredOptions{Poll: time.Millisecond})
		proxy.OnQuery(nil)
		require.Equal(t, 1, strings.Count(log.String(), "deferred requests cannot be looked for"), log.String())
	})
}
