package order_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// brokenObserver has a bug where it is told of anomalies.
type brokenObserver struct{ order.Observer }

func (brokenObserver) Noticed(order.Anomaly, time.Duration) { panic("a bug") }

// TestAPanicInTheLedgerLeavesNobodyWaiting, nor one in who is told: the ticket is finished
// once, and nothing is claimed.
func TestAPanicInTheLedgerLeavesNobodyWaiting(t *testing.T) {
	t.Parallel()
	ours := func(*stubs) order.Admission { return order.Admission{Advice: order.Ours} }
	foreign := func(s *stubs) order.Admission {
		r := s.receipt(order.Succeeded)
		r.Server = elsewhere
		return order.Admission{Advice: order.Seen, Receipt: r}
	}
	bug := func(context.Context) (order.Receipt, error) { panic("a bug") }
	for name, c := range map[string]struct {
		admission func(s *stubs) order.Admission
		ledger    func(s *stubs)
	}{
		"deciding": {ours, func(s *stubs) {
			s.ledger.decide = func(context.Context, *order.Command) (order.Decision, error) { panic("a bug") }
		}},
		"confirming":          {foreign, func(s *stubs) { s.ledger.find = bug }},
		"told of a loss":      {foreign, func(*stubs) {}},
		"told of an old mark": {func(s *stubs) order.Admission { return running(s, time.Hour) }, func(*stubs) {}},
		"told of a miss": {ours, func(s *stubs) {
			s.ledger.decide = func(context.Context, *order.Command) (order.Decision, error) {
				return order.Decision{Kind: order.Replayed, Receipt: s.receipt(order.Succeeded), Remembered: true}, nil
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStubs(t)
			s.filter.admissions = []order.Admission{c.admission(s)}
			c.ledger(s)
			intake := order.NewIntake(order.Options{
				Filter: s.filter, Ledger: s.ledger, Observer: brokenObserver{s.observer}, Now: time.Now,
				Tuning: func() order.Tuning { return defaultTuning },
			})
			require.PanicsWithValue(t, "a bug", func() { _, _ = intake.Submit(t.Context(), s.command, 0) })
			requireOutcome(t, s.end().Err, order.OutcomeUnknown)
			require.ErrorIs(t, s.end().Err, order.ErrInternal)
			require.Equal(t, order.MarkLeft, s.end().Mark)
		})
	}
}
