package ordertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
)

func newLedger(t *testing.T) (*ordertest.Ledger, *order.Command) {
	t.Helper()
	l := ordertest.NewLedger(ordertest.PlainRenderer{}, time.Now)
	require.NoError(t, l.SetBalance(t.Context(), "alice", 10_00))
	require.NoError(t, l.SetStock(t.Context(), "a", 5))
	c, err := order.NewCommand(order.CreateOrder, "alice", "k", []order.Line{{SKU: "a", Quantity: 2, Amount: 3_00, ExternalOrderNo: "n"}})
	require.NoError(t, err)
	return l, c
}

func TestFaultsComeBeforeAndAfterTheCommit(t *testing.T) {
	t.Parallel()
	l, c := newLedger(t)
	boom := errors.New("boom")
	l.SetFault(func(*order.Command) error { return order.Undecided(order.OutcomeNotCommitted, boom) })
	_, err := l.Decide(t.Context(), c)
	require.ErrorIs(t, err, boom)
	require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(err))
	require.Zero(t, l.CommitCount())

	l.SetFault(nil)
	l.SetLostReply(func(*order.Command, order.Decision) error { return boom })
	_, err = l.Decide(t.Context(), c)
	require.ErrorIs(t, err, boom)
	require.Equal(t, order.OutcomeUnknown, order.OutcomeOf(err))
	require.Equal(t, 1, l.CommitCount())

	l.SetLostReply(nil)
	d, err := l.Sibling().Decide(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, order.Replayed, d.Kind)
	require.Equal(t, ordertest.Calls{Decide: 2}, l.Calls())

	l.SetReadFault(func(string, order.Key) error { return boom })
	_, err = l.Find(t.Context(), "alice", "k")
	require.ErrorIs(t, err, boom)
	_, err = l.Confirm(t.Context(), "alice", "k")
	require.ErrorIs(t, err, boom)
	require.Equal(t, ordertest.Calls{Decide: 2, Find: 1, Confirm: 1}, l.Calls())
}

func TestHeldCommandsWaitForTheirRelease(t *testing.T) {
	t.Parallel()
	l, c := newLedger(t)
	arrived := l.Block()
	done := make(chan error, 1)
	go func() {
		_, err := l.Decide(context.Background(), c)
		done <- err
	}()
	require.Same(t, c, <-arrived)
	require.Zero(t, l.CommitCount())
	l.Release()
	require.NoError(t, <-done)
	require.Equal(t, 1, l.CommitCount())

	arrived = l.Block()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := l.Decide(ctx, c)
		done <- err
	}()
	<-arrived
	cancel()
	err := <-done
	require.ErrorIs(t, err, order.ErrUnavailable)
	require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(err))
	l.Release()
	l.Release() // nothing is held: nothing happens
}

func TestAFailoverMayLoseAnOrder(t *testing.T) {
	t.Parallel()
	l, c := newLedger(t)
	first, err := l.Decide(t.Context(), c)
	require.NoError(t, err)
	l.Lose("alice", "k")
	l.SetIdentity(7)
	_, err = l.Find(t.Context(), "alice", "k")
	require.ErrorIs(t, err, order.ErrNotFound)
	balance, err := l.Balance(t.Context(), "alice")
	require.NoError(t, err)
	require.Equal(t, order.Amount(10_00), balance)
	stock, _, err := l.Stock(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, int64(5), stock)

	again, err := l.Decide(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, order.Created, again.Kind, "the number is free, too")
	require.NotEqual(t, first.Receipt.Response.Location, again.Receipt.Response.Location)
	require.Equal(t, order.ServerID(7), again.Receipt.Server)
}
