package ordertest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
)

func TestFilterKeepsFlightsApartAndSharesMarks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	here := ordertest.NewFilter(time.Now)
	there := here.Sibling()
	attempt := order.Attempt{UserID: "alice", Key: "k", Digest: order.Digest{1}}
	require.Empty(t, here.Peek(ctx, "alice", "k"))

	first := here.Admit(ctx, attempt)
	require.Equal(t, order.Ours, first.Advice)
	joined := here.Admit(ctx, attempt)
	require.Equal(t, order.Joined, joined.Advice)
	require.Nil(t, joined.Ticket)
	rival := there.Admit(ctx, attempt)
	require.Equal(t, order.Running, rival.Advice)
	require.Equal(t, attempt.Digest, rival.Digest)
	rival.Ticket.Finish(ctx, order.End{})
	require.Len(t, here.Peek(ctx, "alice", "k"), 2)
	require.Len(t, there.Peek(ctx, "alice", "k"), 1)

	answer := order.Answer{Kind: order.Created}
	receipt := order.Receipt{Digest: attempt.Digest, State: order.Succeeded}
	first.Ticket.Finish(ctx, order.End{Answer: answer, Mark: order.MarkReceipt, Receipt: receipt})
	got, err := joined.Flight.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, answer, got)
	seen := there.Admit(ctx, attempt)
	require.Equal(t, order.Seen, seen.Advice)
	require.Equal(t, receipt, seen.Receipt)
	seen.Ticket.Finish(ctx, order.End{Mark: order.MarkReleased})
	require.Len(t, there.Peek(ctx, "alice", "k"), 1, "only the owner's mark can be released")
	require.Zero(t, here.Flights()+there.Flights())
	require.Panics(t, func() { first.Ticket.Finish(ctx, order.End{}) })
}

func TestFilterThatIsDownStillKnowsItsFlights(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := ordertest.NewFilter(time.Now)
	f.PutReceipt("alice", "k", order.Receipt{Digest: order.Digest{1}})
	f.SetDown(true)
	attempt := order.Attempt{UserID: "alice", Key: "k", Digest: order.Digest{1}}
	bypassed := f.Admit(ctx, attempt)
	require.Equal(t, order.Bypassed, bypassed.Advice)
	require.Equal(t, order.Joined, f.Admit(ctx, attempt).Advice)
	require.Equal(t, []order.Glimpse{
		{Layer: order.LayerProcess, Running: true, Digest: order.Digest{1}},
		{Layer: order.LayerRedis, Unavailable: true},
	}, f.Peek(ctx, "alice", "k"))
	bypassed.Ticket.Finish(ctx, order.End{Mark: order.MarkReleased})
	f.SetDown(false)
	require.Equal(t, order.Seen, f.Admit(ctx, attempt).Advice)
}

func TestFilterKeepsTheContract(t *testing.T) {
	t.Parallel()
	ordertest.RunFilter(t, func(*testing.T) ordertest.Filters {
		here := ordertest.NewFilter(time.Now)
		there := here.Sibling()
		return ordertest.Filters{Here: here, There: there, SetDown: func(down bool) { here.SetDown(down); there.SetDown(down) }}
	})
}
