package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// patientLocks wait for a row for longer than any test holds one.
func patientLocks(dsn string) Options {
	return Options{DSN: dsn, Workers: 1, LockWaitTimeout: 30 * time.Second, ReadTimeout: 40 * time.Second, WaitTimeout: time.Minute}
}

// A user whose row is held waits for it by one transaction, whatever they ask for
// and however often; what somebody else asks for comes in between.
func TestAHeldRowTakesOnePlace(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, patientLocks(dsn))
		anns := placed(t, h, "ann", potsticker(1_00))
		theirs := placed(t, h, "held", potsticker(1_00))
		release := holdUser(t, dsn, "held")
		defer release()
		var others sync.WaitGroup
		for range 2 * besideLedger {
			others.Go(func() {
				if _, err := h.Cancel(t.Context(), "held", theirs); err != nil {
					t.Errorf("cancel: %v", err)
				}
			})
			others.Go(func() {
				if _, err := h.Confirm(t.Context(), "held", "k"); err != nil {
					t.Errorf("confirm: %v", err)
				}
			})
		}
		requireRoom(t, h, userRow("held"), 4*besideLedger, anns)
		release()
		others.Wait()
		requireAllPlaces(t, h)
	})
}

// Nor does a held SKU take more, whoever wants to give some of it back.
func TestHeldStockTakesOnePlace(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, patientLocks(dsn))
		require.NoError(t, h.SetStock(t.Context(), "tea", 100))
		anns := placed(t, h, "ann", potsticker(1_00))
		theirs := map[string]order.ID{}
		for i := range 2 * besideLedger {
			user := fmt.Sprint("held-", i)
			theirs[user] = placed(t, h, user, order.Line{SKU: "tea", Quantity: 1, Amount: 1_00})
		}
		release := holdRow(t, dsn, "SELECT sku FROM stock WHERE sku = ? FOR UPDATE", "tea")
		defer release()
		var others sync.WaitGroup
		for user, id := range theirs {
			others.Go(func() {
				if _, err := h.Cancel(t.Context(), user, id); err != nil {
					t.Errorf("cancel: %v", err)
				}
			})
		}
		requireRoom(t, h, stockRow("tea"), len(theirs), anns)
		release()
		others.Wait()
		available, _, err := h.Stock(t.Context(), "tea")
		require.NoError(t, err)
		require.EqualValues(t, 100, available)
		requireAllPlaces(t, h)
	})
}

// Nor does a held order, whoever wants to change its state; and of two that are held
// only one transaction each has the server wait.
func TestAHeldOrderTakesOnePlace(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, patientLocks(dsn))
		anns := placed(t, h, "ann", potsticker(1_00))
		var others sync.WaitGroup
		var releases []func()
		for _, user := range []string{"held-1", "held-2"} {
			id := placed(t, h, user, potsticker(1_00))
			release := holdRow(t, dsn, "SELECT order_id FROM orders WHERE order_id = ? FOR UPDATE", id[:])
			defer release()
			releases = append(releases, release)
			for _, change := range []func() error{
				func() error { _, err := h.Cancel(t.Context(), user, id); return err },
				func() error { _, err := h.Apply(t.Context(), paid(id, "m"+user, "r"+user, 1_00)); return err },
				func() error { _, err := h.Ship(t.Context(), id); return err },
			} {
				others.Go(func() {
					if err := change(); err != nil {
						t.Errorf("change: %v", err)
					}
				})
			}
			require.Eventually(t, func() bool { return h.places.waiting(orderRow(id)) == 3 }, ample, time.Millisecond)
		}
		result, err := h.Cancel(t.Context(), "ann", anns)
		require.NoError(t, err)
		require.Equal(t, order.Applied, result.Effect)
		for _, release := range releases {
			release()
		}
		others.Wait()
		requireAllPlaces(t, h)
	})
}

// What gives nothing back waits for no stock.
func TestARepeatedCancellationWaitsForNoStock(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, patientLocks(dsn))
		require.NoError(t, h.SetStock(t.Context(), "tea", 10))
		id := placed(t, h, "ann", order.Line{SKU: "tea", Quantity: 1, Amount: 1_00})
		_, err := h.Cancel(t.Context(), "ann", id)
		require.NoError(t, err)
		leave, err := h.places.take(t.Context(), stockRow("tea"))
		require.NoError(t, err)
		defer leave()
		again, err := h.Cancel(t.Context(), "ann", id)
		require.NoError(t, err)
		require.Equal(t, order.AlreadyThere, again.Effect)
	})
}

// requireRoom waits until so many wait for a row, and cancels ann's order then.
func requireRoom(t *testing.T, h *harness, held lockedRow, waiting int, anns order.ID) {
	t.Helper()
	require.Eventually(t, func() bool { return h.places.waiting(held) == waiting }, ample, time.Millisecond)
	result, err := h.Cancel(t.Context(), "ann", anns)
	require.NoError(t, err)
	require.Equal(t, order.Applied, result.Effect)
}

func requireAllPlaces(t *testing.T, h *harness) {
	t.Helper()
	require.Empty(t, h.places.free)
	require.Empty(t, h.places.turns)
}

// Who gives up leaves nothing behind.
func TestAPlaceIsWaitedForUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	p := newPlaces()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	leave, err := p.take(t.Context(), userRow("ann"))
	require.NoError(t, err)
	_, err = p.take(gone, userRow("ann"))
	require.ErrorIs(t, err, context.Canceled)
	var all []func()
	for range besideLedger - 1 {
		leave, err := p.take(t.Context())
		require.NoError(t, err)
		all = append(all, leave)
	}
	_, err = p.take(gone, userRow("bob"))
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, p.waiting(userRow("bob")))
	require.Equal(t, 1, p.waiting(userRow("ann")))
	for _, leave := range append(all, leave) {
		leave()
	}
	require.Empty(t, p.free)
	require.Empty(t, p.turns)
}

// waiting is how many have the turn of a row or wait for it.
func (p *places) waiting(row lockedRow) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.turns[row]; t != nil {
		return t.known
	}
	return 0
}
