package ordertest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// Filters are those of two processes that share one tier.
type Filters struct {
	Here, There order.Filter
	// SetDown takes the shared tier away from both, or gives it back.
	SetDown func(down bool)
}

// RunFilter checks the promises of [order.Filter]. All tests share what is
// opened, so none but the last takes the shared tier away.
func RunFilter(t *testing.T, open func(t *testing.T) Filters) {
	f := open(t)
	for _, s := range []struct {
		name string
		run  func(t *testing.T, f Filters)
	}{
		{"AKeyIsMarkedOnce", keyIsMarkedOnce},
		{"AReceiptIsSeenEverywhere", receiptIsSeen},
		{"WhoJoinedGetsTheEnd", joinedGetTheEnd},
		{"OnlyItsOwnerReleasesAMark", ownerReleases},
		{"TwoUsersWithOneKeyNeverMeet", usersNeverMeet},
		{"PeekChangesNothing", peekChangesNothing},
		{"ACallerWhoLeftWaitsForNothing", callerWhoLeft},
		{"WithoutTheSharedTierTheProcessKnowsItsOwn", withoutSharedTier},
	} {
		t.Run(s.name, func(t *testing.T) { s.run(t, f) })
	}
}

func filterAttempt() order.Attempt {
	return order.Attempt{UserID: "user-" + rand.Text(), Key: order.Key(rand.Text()), Digest: order.Digest{1, 2, 3}}
}

func filterEnd(a order.Attempt) order.End {
	r := order.Receipt{
		Digest: a.Digest, State: order.Succeeded, FirstSeen: time.Now().UTC().Truncate(order.TimePrecision), Server: 7,
		Response: order.Response{Status: 201, ContentType: "application/json", Location: "/api/orders/1", Body: []byte(`{"a":1}`)},
	}
	return order.End{Answer: order.Answer{Kind: order.Created, Receipt: r}, Mark: order.MarkReceipt, Receipt: r}
}

var errFilterEnd = errors.New("it came to nothing")

func released() order.End { return order.End{Err: errFilterEnd, Mark: order.MarkReleased} }

// admitted admits an attempt that must have this advice.
func admitted(t *testing.T, f order.Filter, a order.Attempt, want order.Advice) order.Admission {
	t.Helper()
	adm := f.Admit(t.Context(), a)
	require.Equal(t, want, adm.Advice, adm.Advice.String())
	require.Equal(t, want == order.Joined, adm.Flight != nil)
	return adm
}

// finish ends an attempt whose caller has left meanwhile: it is told all the same.
func finish(t *testing.T, adm order.Admission, end order.End) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if adm.Ticket != nil {
		adm.Ticket.Finish(ctx, end)
	}
}

func keyIsMarkedOnce(t *testing.T, f Filters) {
	a := filterAttempt()
	ours := admitted(t, f.Here, a, order.Ours)
	require.NotNil(t, ours.Ticket)
	joined := admitted(t, f.Here, a, order.Joined)
	require.Nil(t, joined.Ticket, "it is not his to end")
	for _, rival := range []order.Filter{f.Here, f.There} {
		other := a
		other.Digest[0]++
		running := admitted(t, rival, other, order.Running)
		require.Equal(t, a.Digest, running.Digest, "of who has the key")
		finish(t, running, order.End{})
	}
	running := admitted(t, f.There, a, order.Running)
	require.Less(t, running.Age, time.Minute)
	finish(t, running, order.End{})
	finish(t, ours, released())
	again := admitted(t, f.There, a, order.Ours)
	finish(t, again, released())
}

func receiptIsSeen(t *testing.T, f Filters) {
	a := filterAttempt()
	end := filterEnd(a)
	finish(t, admitted(t, f.Here, a, order.Ours), end)
	for range 2 {
		for _, filter := range []order.Filter{f.Here, f.There} {
			for _, digest := range []order.Digest{a.Digest, {9}} {
				seen := admitted(t, filter, order.Attempt{UserID: a.UserID, Key: a.Key, Digest: digest}, order.Seen)
				require.Equal(t, end.Receipt, seen.Receipt)
				finish(t, seen, order.End{Answer: end.Answer, Receipt: seen.Receipt})
			}
		}
	}
}

func joinedGetTheEnd(t *testing.T, f Filters) {
	a := filterAttempt()
	ours := admitted(t, f.Here, a, order.Ours)
	joined := admitted(t, f.Here, a, order.Joined)
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err := joined.Flight.Wait(gone)
	require.ErrorIs(t, err, context.Canceled)
	finish(t, ours, released())
	_, err = joined.Flight.Wait(t.Context())
	require.ErrorIs(t, err, errFilterEnd)

	ours = admitted(t, f.Here, a, order.Ours)
	joined = admitted(t, f.Here, a, order.Joined)
	end := filterEnd(a)
	finish(t, ours, end)
	got, err := joined.Flight.Wait(gone)
	require.NoError(t, err, "an answer is worth more than the end of a context")
	require.Equal(t, end.Answer, got)
}

func ownerReleases(t *testing.T, f Filters) {
	a := filterAttempt()
	ours := admitted(t, f.Here, a, order.Ours)
	finish(t, admitted(t, f.There, a, order.Running), released())
	finish(t, admitted(t, f.There, a, order.Running), released())
	finish(t, ours, order.End{Err: errFilterEnd}) // its outcome is unknown
	finish(t, admitted(t, f.Here, a, order.Running), order.End{})
}

func usersNeverMeet(t *testing.T, f Filters) {
	a := filterAttempt()
	b := a
	b.UserID += "b"
	mine := admitted(t, f.Here, a, order.Ours)
	theirs := admitted(t, f.Here, b, order.Ours)
	finish(t, mine, filterEnd(a))
	finish(t, theirs, released())
	require.Empty(t, f.There.Peek(t.Context(), b.UserID, b.Key))
	finish(t, admitted(t, f.There, b, order.Ours), released())
}

func peekChangesNothing(t *testing.T, f Filters) {
	a := filterAttempt()
	peek := func(filter order.Filter) []order.Glimpse { return filter.Peek(t.Context(), a.UserID, a.Key) }
	require.Empty(t, peek(f.Here))
	ours := admitted(t, f.Here, a, order.Ours)
	for filter, layers := range map[order.Filter]int{f.Here: 2, f.There: 1} {
		seen := peek(filter)
		require.Len(t, seen, layers)
		for _, g := range seen {
			require.True(t, g.Running)
			require.Equal(t, a.Digest, g.Digest)
		}
	}
	end := filterEnd(a)
	finish(t, ours, end)
	for _, g := range append(peek(f.Here), peek(f.There)...) {
		require.False(t, g.Running)
		require.Equal(t, end.Receipt, g.Receipt)
		require.Equal(t, a.Digest, g.Digest)
	}
	finish(t, admitted(t, f.There, a, order.Seen), order.End{})
}

func callerWhoLeft(t *testing.T, f Filters) {
	a := filterAttempt()
	gone, leave := context.WithCancel(t.Context())
	leave()
	adm := f.Here.Admit(gone, a)
	require.Contains(t, []order.Advice{order.Ours, order.Bypassed}, adm.Advice)
	require.NotNil(t, adm.Ticket)
	adm.Ticket.Finish(gone, released())
	ours := admitted(t, f.Here, a, order.Ours)
	end := filterEnd(a)
	ours.Ticket.Finish(gone, end)
	seen := admitted(t, f.There, a, order.Seen)
	require.Equal(t, end.Receipt, seen.Receipt, "an end is told whoever has left")
	finish(t, seen, order.End{})
}

func withoutSharedTier(t *testing.T, f Filters) {
	a := filterAttempt()
	f.SetDown(true)
	bypassed := admitted(t, f.Here, a, order.Bypassed)
	require.NotNil(t, bypassed.Ticket)
	joined := admitted(t, f.Here, a, order.Joined)
	finish(t, admitted(t, f.There, a, order.Bypassed), released())
	require.Equal(t, []order.Glimpse{
		{Layer: order.LayerProcess, Running: true, Digest: a.Digest}, {Layer: order.LayerRedis, Unavailable: true},
	}, f.Here.Peek(t.Context(), a.UserID, a.Key))
	end := filterEnd(a)
	finish(t, bypassed, end)
	got, err := joined.Flight.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, end.Answer, got)
	f.SetDown(false)
	finish(t, admitted(t, f.There, a, order.Ours), released())
}
