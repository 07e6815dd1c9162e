package order_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// TestWhatIsAcceptedForLaterIsToldAsThat: who counts must not take it for the
// duplicate of an attempt that is running.
func TestWhatIsAcceptedForLaterIsToldAsThat(t *testing.T) {
	t.Parallel()
	p := newProcess(t, nil)
	intake := order.NewIntake(order.Options{
		Filter: p.filter, Ledger: p.ledger, Deferrals: p.ledger, Observer: p.observer, Now: time.Now,
		Tuning: func() order.Tuning { return defaultTuning },
	})
	c := aliceOrders(t)
	var want []order.Kind
	ask := func(kind order.Kind, submit func() (order.Answer, error)) {
		t.Helper()
		a, err := submit()
		require.NoError(t, err)
		require.Equal(t, kind.String(), a.Kind.String())
		want = append(want, kind)
	}
	later := func() (order.Answer, error) { return intake.Defer(t.Context(), c) }
	now := func() (order.Answer, error) { return intake.Submit(t.Context(), c, 0) }
	ask(order.Accepted, later)
	ask(order.Accepted, later)
	ask(order.InProgress, now)
	require.NoError(t, p.ledger.CarryOut(t.Context()))
	ask(order.Replayed, later)
	ask(order.Replayed, now)

	var told []order.Kind
	for _, d := range p.observer.Decisions() {
		told = append(told, d.Answer.Kind)
	}
	require.Equal(t, want, told)
	require.Zero(t, p.filter.Flights())
}
