package order_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// leaver is a process whose first caller is held between the filter and the
// ledger until it is told to go on.
func leaver(t *testing.T) (p *process, admitted <-chan struct{}, proceed func()) {
	t.Helper()
	in, out := make(chan struct{}), make(chan struct{})
	var later atomic.Bool
	p = newProcess(t, func(context.Context, order.Admission) {
		if later.CompareAndSwap(false, true) {
			close(in)
			<-out
		}
	})
	return p, in, func() { close(out) }
}

// TestWhoJoinsTakesOverWhenTheOwnerLeaves: the owner's client goes away between
// the filter and the ledger, while others wait for its answer.
func TestWhoJoinsTakesOverWhenTheOwnerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, admitted, proceed := leaver(t)
		ctx, leave := context.WithCancel(t.Context())
		owner := p.submit(ctx, aliceOrders(t), 0)
		<-admitted
		joined := []<-chan submitted{
			p.submit(t.Context(), aliceOrders(t), 0),
			p.submit(t.Context(), aliceOrders(t), 0),
			p.submit(t.Context(), aliceOrders(t), 0),
		}
		synctest.Wait()
		leave()
		proceed()

		got := <-owner
		require.ErrorIs(t, got.err, context.Canceled)
		requireOutcome(t, got.err, order.OutcomeNotCommitted)
		kinds := map[order.Kind]int{}
		for _, j := range joined {
			got := <-j
			require.NoError(t, got.err)
			kinds[got.Kind]++
		}
		require.Equal(t, map[order.Kind]int{order.Created: 1, order.Replayed: 2}, kinds)
		require.Equal(t, 1, p.ledger.CommitCount())
		require.Empty(t, p.observer.Anomalies(), "the mark was released")
	})
}

// TestWhoCannotTakeOverAnyMoreIsToldWhatIsKnown: the owner has left, and there
// is no time to begin anew.
func TestWhoCannotTakeOverAnyMoreIsToldWhatIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStubs(t, order.Admission{Advice: order.Joined, Flight: endedFlight{err: abandoned(t)}})
		s.tuning.Budget = 0
		_, err := s.intake.Submit(t.Context(), s.command, 0)
		requireOutcome(t, err, order.OutcomeUnknown)
		require.ErrorIs(t, err, order.ErrUnavailable)
	})
}

// abandoned returns what those are told who joined an attempt whose caller left.
func abandoned(t *testing.T) error {
	t.Helper()
	s := newStubs(t, order.Admission{Advice: order.Ours})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.intake.Submit(ctx, s.command, 0)
	require.Error(t, err)
	return s.end().Err
}
