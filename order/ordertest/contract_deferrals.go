package ordertest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// DeferralsHarness is a ledger that defers, together with eyes on its database.
// Its Sibling must be a DeferralsHarness too.
type DeferralsHarness interface {
	Harness
	order.Deferrals
	// CarryOut decides whatever was accepted, until nothing is left for it.
	CarryOut(ctx context.Context) error
	// CountDeferred tells how many accepted commands of a user wait.
	CountDeferred(ctx context.Context, userID string) (int, error)
}

// RunDeferrals checks the promises of [order.Deferrals]. Every test needs a
// database of its own, for carrying out spares nobody's commands.
func RunDeferrals(t *testing.T, open func(t *testing.T) DeferralsHarness) {
	for _, s := range []struct {
		name string
		run  func(t *testing.T, d *deferDesk)
	}{
		{"AcceptedIsInProgressUntilItIsCarriedOut", acceptedWaits},
		{"CarriedOutAnswersLikeTheSynchronousOne", carriedOut},
		{"KnownKeysAreNotAcceptedAgain", acceptedKnown},
		{"RefusalsAreAnswersToo", acceptedRefused},
		{"UnknownUserLeavesNothingAccepted", acceptedUnknown},
		{"RacedAcceptancesAreOne", acceptedRaced},
		{"RacedWorkersMakeOneOfEach", workersRaced},
		{"EndedContextAcceptsNothing", acceptedEnded},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			s.run(t, &deferDesk{newDesk(t, h, 100_00), h})
		})
	}
}

// deferDesk is a desk that defers.
type deferDesk struct {
	*desk
	h DeferralsHarness
}

// accept wants a decision of this kind.
func (d *deferDesk) accept(c *order.Command, want order.Kind) order.Decision {
	d.t.Helper()
	got, err := d.h.Accept(d.ctx, c)
	require.NoError(d.t, err)
	require.Equal(d.t, want.String(), got.Kind.String())
	return got
}

func (d *deferDesk) carryOut() {
	d.t.Helper()
	require.NoError(d.t, d.h.CarryOut(d.ctx))
	d.waiting(0)
}

func (d *deferDesk) waiting(want int) {
	d.t.Helper()
	n, err := d.h.CountDeferred(d.ctx, d.user)
	require.NoError(d.t, err)
	require.Equal(d.t, want, n, "deferred requests")
}

func (d *deferDesk) sibling(t *testing.T) DeferralsHarness {
	t.Helper()
	s, ok := d.desk.h.Sibling(t).(DeferralsHarness)
	require.True(t, ok, "the sibling does not defer")
	return s
}

func acceptedWaits(t *testing.T, d *deferDesk) {
	c := d.batch("k", d.numbered(1_00, "B-1"), d.numbered(2_00, "B-2"))
	first := d.accept(c, order.InProgress)
	require.True(t, first.Remembered)
	require.Equal(t, order.Processing, first.Receipt.State)
	require.Equal(t, c.Digest, first.Receipt.Digest)
	require.False(t, first.Receipt.FirstSeen.IsZero())
	for range 2 {
		again := d.accept(c, order.InProgress)
		require.Equal(t, first.Receipt.FirstSeen.UnixMilli(), again.Receipt.FirstSeen.UnixMilli())
		d.decide(c, order.InProgress)
	}
	other := d.batch("k", d.numbered(1_00, "B-1"))
	d.accept(other, order.Reused)
	d.decide(other, order.Reused)
	for _, read := range []func(context.Context, string, order.Key) (order.Receipt, error){d.h.Find, d.h.Confirm} {
		r, err := read(d.ctx, d.user, "k")
		require.NoError(t, err)
		require.Equal(t, order.Processing, r.State)
		require.Equal(t, c.Digest, r.Digest)
		require.Empty(t, r.Response.Body)
	}
	d.waiting(1)
	d.holds(100_00, 0, 1)
}

func carriedOut(t *testing.T, d *deferDesk) {
	require.NoError(t, d.h.SetStock(d.ctx, d.sku, 5))
	c := d.batch("k", d.numbered(1_00, "B-1"), d.numbered(2_00, "B-2"), d.numbered(3_00, "B-3"))
	accepted := d.accept(c, order.InProgress)
	d.carryOut()
	got := d.decide(c, order.Replayed)
	require.Equal(t, order.Succeeded, got.Receipt.State)
	require.Equal(t, accepted.Receipt.FirstSeen.UnixMilli(), got.Receipt.FirstSeen.UnixMilli(), "since it was accepted")
	created := d.created(got.Receipt)
	require.Equal(t, order.CreateBatch, created.Operation)
	require.Len(t, created.Orders, 3)
	for i, o := range created.Orders {
		require.Equal(t, c.Lines[i].ExternalOrderNo, o.ExternalOrderNo)
		require.Equal(t, i, o.LineNo)
		id, err := order.ParseID(o.ID)
		require.NoError(t, err)
		read, err := d.h.Order(d.ctx, d.user, id)
		require.NoError(t, err)
		require.Equal(t, o.CreatedAt, read.CreatedAt.UTC().Format(order.TimeFormat))
	}
	sameReceipt(t, got.Receipt, d.accept(c, order.Replayed).Receipt)
	found, err := d.h.Find(d.ctx, d.user, "k")
	require.NoError(t, err)
	sameReceipt(t, got.Receipt, found)
	d.carryOut()
	d.holds(94_00, 3, 1)
	d.stocked(d.sku, 2)
}

func acceptedKnown(t *testing.T, d *deferDesk) {
	c := d.batch("k", d.numbered(1_00, "B-1"))
	first := d.decide(c, order.Created)
	sameReceipt(t, first.Receipt, d.accept(c, order.Replayed).Receipt)
	d.accept(d.batch("k", d.numbered(2_00, "B-1")), order.Reused)
	refused, _ := d.refuse(d.batch("poor", d.numbered(200_00, "B-2")), order.InsufficientBalance)
	sameReceipt(t, refused.Receipt, d.accept(d.batch("poor", d.numbered(200_00, "B-2")), order.Replayed).Receipt)
	d.waiting(0)
	d.carryOut()
	d.holds(99_00, 1, 2)
}

func acceptedRefused(t *testing.T, d *deferDesk) {
	d.decide(d.one("one", d.numbered(1_00, "B-1")), order.Created)
	dear := d.batch("dear", d.numbered(60_00, "B-2"), d.numbered(60_00, "B-3"))
	taken := d.batch("taken", d.numbered(1_00, "B-1"), d.numbered(1_00, "B-4"), d.numbered(1_00, "B-4"))
	fine := d.batch("fine", d.numbered(1_00, "B-2"), d.numbered(1_00, "B-4"))
	for _, c := range []*order.Command{dear, taken, fine} {
		d.accept(c, order.InProgress)
	}
	d.waiting(3)
	d.carryOut()
	got := d.decide(dear, order.Replayed)
	require.Equal(t, order.Failed, got.Receipt.State)
	require.Equal(t, order.InsufficientBalance, d.rejected(got.Receipt).Code)
	got = d.decide(taken, order.Replayed)
	require.Equal(t, order.Failed, got.Receipt.State)
	require.Len(t, d.rejected(got.Receipt).Conflicts, 2)
	require.Equal(t, order.Succeeded, d.accept(fine, order.Replayed).Receipt.State)
	d.holds(97_00, 3, 4)
}

func acceptedUnknown(t *testing.T, d *deferDesk) {
	s := newStranger(t, d.h)
	_, err := d.h.Accept(d.ctx, s.batch("k", s.numbered(1_00, "B-1")))
	require.ErrorIs(t, err, order.ErrUnknownUser)
	require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(err))
	s.counts(0, 0)
	d.carryOut()
	s.counts(0, 0)
}

func acceptedRaced(t *testing.T, d *deferDesk) {
	c := d.batch("k", d.numbered(1_00, "B-1"), d.numbered(1_00, "B-2"))
	gateways := []DeferralsHarness{d.h, d.sibling(t)}
	results := make([]result, 16)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i].Decision, results[i].err = gateways[i%2].Accept(d.ctx, c) })
	}
	wg.Wait()
	require.Equal(t, map[order.Kind]int{order.InProgress: len(results)}, d.tally(results))
	d.waiting(1)
	d.carryOut()
	d.holds(98_00, 2, 1)
}

func workersRaced(t *testing.T, d *deferDesk) {
	commands := make([]*order.Command, 12)
	for i := range commands {
		number := unique("B")
		commands[i] = d.batch(unique("k"), d.numbered(1_00, number+"-1"), d.numbered(1_00, number+"-2"))
		d.accept(commands[i], order.InProgress)
	}
	workers := []DeferralsHarness{d.h, d.sibling(t), d.h, d.sibling(t)}
	errs := make([]error, len(workers))
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() { errs[i] = w.CarryOut(d.ctx) })
	}
	wg.Wait()
	require.Equal(t, make([]error, len(workers)), errs)
	d.waiting(0)
	for _, c := range slices.Concat(commands, commands) {
		require.Equal(t, order.Succeeded, d.decide(c, order.Replayed).Receipt.State)
	}
	d.holds(100_00-24_00, 24, 12)
}

func acceptedEnded(t *testing.T, d *deferDesk) {
	c := d.batch("k", d.numbered(1_00, "B-1"))
	ctx, cancel := context.WithCancel(d.ctx)
	cancel()
	_, err := d.h.Accept(ctx, c)
	requireUndecided(t, err)
	d.waiting(0)
	d.counts(0, 0)
	d.accept(c, order.InProgress)
}
