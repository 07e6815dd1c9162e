package order_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func running(s *stubs, age time.Duration) order.Admission {
	return order.Admission{Advice: order.Running, Layer: order.LayerRedis, Digest: s.command.Digest, Age: age}
}

func TestAYoungMarkOfTheSameContentIsInProgress(t *testing.T) {
	t.Parallel()
	for age, retryAfter := range map[time.Duration]time.Duration{
		0:                       100 * time.Millisecond,
		500 * time.Millisecond:  500 * time.Millisecond,
		1500 * time.Millisecond: time.Second,
		2 * time.Second:         time.Second,
	} {
		s := newStubs(t)
		s.filter.admissions = []order.Admission{running(s, age)}
		a, err := s.intake.Submit(t.Context(), s.command, 0)
		require.NoError(t, err)
		require.Equal(t, order.Answer{Kind: order.InProgress, Layer: order.LayerRedis, Age: age, RetryAfter: retryAfter}, a)
		require.Equal(t, order.End{Answer: a}, s.end(), "the mark of somebody else is left")
		require.Zero(t, s.ledger.calls)
		require.Empty(t, s.observer.Anomalies())
	}
}

func TestAYoungMarkOfAnotherContentIsReused(t *testing.T) {
	t.Parallel()
	s := newStubs(t, order.Admission{Advice: order.Running, Layer: order.LayerRedis, Digest: order.Digest{1}, Age: time.Second})
	a, err := s.intake.Submit(t.Context(), s.command, time.Hour)
	require.NoError(t, err)
	require.Equal(t, order.Answer{Kind: order.Reused, Layer: order.LayerRedis, Age: time.Second}, a)
	require.Equal(t, order.End{Answer: a}, s.end())
	require.Zero(t, s.ledger.calls)
}

func TestWaitingEndsWithTheReplay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStubs(t)
		r := s.receipt(order.Succeeded)
		s.filter.admissions = []order.Admission{
			running(s, 0), running(s, 0), running(s, 0),
			{Advice: order.Seen, Layer: order.LayerRedis, Receipt: r},
		}
		started := time.Now()
		a, err := s.intake.Submit(t.Context(), s.command, 5*time.Second)
		require.NoError(t, err)
		require.Equal(t, order.Replayed, a.Kind)
		require.Equal(t, r, a.Receipt)
		require.Equal(t, (20+40+80)*time.Millisecond, time.Since(started))
		require.Len(t, s.filter.ends, 4, "every look gives its ticket back")
		require.Len(t, s.observer.Decisions(), 1)
		require.Equal(t, 140*time.Millisecond, s.observer.Decisions()[0].Took)
	})
}

func TestWaitingEndsWhenTheTimeIsUp(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ asked, most time.Duration }{
		{-time.Second, 0},
		{0, 0},
		{20 * time.Millisecond, 20 * time.Millisecond},
		{3 * time.Second, 3 * time.Second},
		{time.Hour, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStubs(t)
			s.filter.admissions = []order.Admission{running(s, 0)}
			started := time.Now()
			a, err := s.intake.Submit(t.Context(), s.command, tc.asked)
			require.NoError(t, err)
			require.Equal(t, order.InProgress, a.Kind)
			require.LessOrEqual(t, time.Since(started), tc.most)
			require.GreaterOrEqual(t, time.Since(started), tc.most-200*time.Millisecond)
			require.Zero(t, s.ledger.calls)
		})
	}
}

func TestWaitingAsksTheLedgerWhenTheMarkGrowsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStubs(t)
		s.filter.admissions = []order.Admission{running(s, 2*time.Second), running(s, 2*time.Second+time.Millisecond)}
		inner := s.ledger.decide
		s.ledger.decide = func(ctx context.Context, c *order.Command) (order.Decision, error) {
			deadline, _ := ctx.Deadline()
			require.Equal(t, defaultTuning.Budget, time.Until(deadline), "what is left to decide has a budget of its own")
			return inner(ctx, c)
		}
		a, err := s.intake.Submit(t.Context(), s.command, 5*time.Second)
		require.NoError(t, err)
		require.Equal(t, order.Created, a.Kind)
		require.Equal(t, []order.Anomaly{order.StaleMark}, s.observer.Anomalies())
	})
}

func TestACallerWhoLeavesWhileWaitingKnowsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStubs(t)
		s.filter.admissions = []order.Admission{running(s, 0)}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := s.intake.Submit(ctx, s.command, 5*time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		requireOutcome(t, err, order.OutcomeUnknown)
		require.Zero(t, s.ledger.calls)
	})
}
