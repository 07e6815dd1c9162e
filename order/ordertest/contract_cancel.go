package ordertest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// cancelled gives commands less time than they may need, from none to plenty.
// Whatever is said of them must be true, and the next attempt settles them.
func cancelled(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	const n = 40
	commands := make([]*order.Command, n)
	results := make([]result, n)
	var wg sync.WaitGroup
	for i := range commands {
		commands[i] = d.one(unique("k"), d.line(1_00))
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(d.ctx, time.Duration(i)*500*time.Microsecond)
			defer cancel()
			results[i].Decision, results[i].err = h.Decide(ctx, commands[i])
		})
	}
	wg.Wait()

	for i, c := range commands {
		again, err := h.Decide(d.ctx, c)
		require.NoError(t, err)
		switch {
		case results[i].err == nil:
			require.Equal(t, order.Created, results[i].Kind)
			require.Equal(t, order.Replayed, again.Kind)
			sameReceipt(t, results[i].Receipt, again.Receipt)
		case order.OutcomeOf(results[i].err) == order.OutcomeNotCommitted:
			requireUndecided(t, results[i].err)
			require.Equal(t, order.Created, again.Kind, "not committed was said, but it was")
		default:
			requireUndecided(t, results[i].err)
			require.Contains(t, []order.Kind{order.Created, order.Replayed}, again.Kind)
		}
	}
	d.holds(60_00, n, n)
}

func endedContext(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	ctx, cancel := context.WithCancel(d.ctx)
	cancel()
	_, err := h.Decide(ctx, d.one("k", d.line(1_00)))
	requireUndecided(t, err)
	require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(err))
	d.holds(100_00, 0, 0)

	_, err = h.Find(ctx, d.user, "k")
	require.Error(t, err)
	require.NotErrorIs(t, err, order.ErrNotFound)
	_, err = h.Confirm(ctx, d.user, "k")
	require.Error(t, err)
	require.NotErrorIs(t, err, order.ErrNotFound)

	d.decide(d.one("k", d.line(1_00)), order.Created)
}

// requireUndecided wants an error as [order.Ledger] promises it.
func requireUndecided(t *testing.T, err error) {
	t.Helper()
	var u *order.UndecidedError
	require.ErrorAs(t, err, &u)
	require.Contains(t, []order.Outcome{order.OutcomeNotCommitted, order.OutcomeUnknown}, u.Outcome)
	for _, sentinel := range []error{
		order.ErrUnavailable, order.ErrOverloaded, order.ErrShuttingDown, order.ErrUnknownUser, order.ErrInternal,
	} {
		if errors.Is(err, sentinel) {
			return
		}
	}
	require.Fail(t, "the error wraps no sentinel", "%v", err)
}
