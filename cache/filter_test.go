package cache

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

func TestFirstAttemptOwnsAndItsReceiptIsSeenEverywhere(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		mini := startMini(t)
		here, there := open(t, mini.Addr(), ways), open(t, mini.Addr(), ways)

		adm := here.admit(t, attempt("alice", "k"), order.Ours)
		rival := there.admit(t, attempt("alice", "k"), order.Running)
		require.Equal(t, order.LayerRedis, rival.Layer)
		require.Equal(t, attempt("alice", "k").Digest, rival.Digest)
		require.Positive(t, rival.Age)
		rival.Ticket.Finish(t.Context(), order.End{Answer: order.Answer{Kind: order.InProgress}})

		adm.Ticket.Finish(t.Context(), created())
		seen := there.admit(t, attempt("alice", "k"), order.Seen)
		require.Equal(t, order.LayerRedis, seen.Layer)
		require.Equal(t, receipt(), seen.Receipt)
		seen.Ticket.Finish(t.Context(), order.End{Receipt: seen.Receipt})

		for _, r := range []*rig{here, there} {
			local := r.admit(t, attempt("alice", "k"), order.Seen)
			require.Equal(t, order.LayerProcess, local.Layer)
			require.Equal(t, receipt(), local.Receipt)
			require.Nil(t, local.Ticket)
		}
		here.admit(t, attempt("bob", "k"), order.Ours).Ticket.Finish(t.Context(), released())
		here.admit(t, attempt("alice", "K"), order.Ours).Ticket.Finish(t.Context(), released())
	})
}

func TestReleasedKeyIsFreeAgain(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		r := open(t, startMini(t).Addr(), ways)
		for range 3 {
			r.admit(t, attempt("alice", "k"), order.Ours).Ticket.Finish(t.Context(), released())
			require.False(t, r.has(t, "alice", "k"))
		}
	})
}

func TestUnknownOutcomeLeavesTheMark(t *testing.T) {
	t.Parallel()
	mini := startMini(t)
	r := open(t, mini.Addr(), nil)
	r.admit(t, attempt("alice", "k"), order.Ours).Ticket.Finish(t.Context(), order.End{Err: order.ErrUnavailable})
	r.admit(t, attempt("alice", "k"), order.Running).Ticket.Finish(t.Context(), released())
	require.True(t, r.has(t, "alice", "k"), "a rival's mark is not released")
	mini.FastForward(DefaultTuning().InProgressTTL)
	r.admit(t, attempt("alice", "k"), order.Ours).Ticket.Finish(t.Context(), released())
}

func TestExpiredMarkDoesNotTakeTheNextOwnersWithIt(t *testing.T) {
	t.Parallel()
	mini := startMini(t)
	r := open(t, mini.Addr(), guardOnly)
	old := r.admit(t, attempt("alice", "k"), order.Ours)
	mini.FastForward(DefaultTuning().InProgressTTL)
	next := r.admit(t, attempt("alice", "k"), order.Ours)
	old.Ticket.Finish(t.Context(), released())
	r.admit(t, attempt("alice", "k"), order.Running).Ticket.Finish(t.Context(), order.End{})
	next.Ticket.Finish(t.Context(), created())
	r.admit(t, attempt("alice", "k"), order.Seen).Ticket.Finish(t.Context(), order.End{})
}

// The same with two gateways and the clock of a real Redis.
func TestMarkThatARivalMadeAnewIsNotReleased(t *testing.T) {
	t.Parallel()
	addr := testserver.Redis(t).Addr
	short := func(s *settings) { s.tuning.InProgressTTL = time.Second }
	former, rival := open(t, addr, short), open(t, addr, nil)
	user := somebody(t)
	late := former.admit(t, attempt(user, "k"), order.Ours)
	require.Eventually(t, func() bool { return !rival.has(t, user, "k") }, hung, 10*time.Millisecond)
	adm := rival.admit(t, attempt(user, "k"), order.Ours)
	late.Ticket.Finish(t.Context(), released())
	require.EqualValues(t, kindMark, rival.entry(t, user, "k").kind)
	adm.Ticket.Finish(t.Context(), released())
	require.False(t, rival.has(t, user, "k"))
}

func TestEntriesExpireAsTuned(t *testing.T) {
	t.Parallel()
	mini := startMini(t)
	r := open(t, mini.Addr(), func(s *settings) {
		s.tuning.InProgressTTL, s.tuning.ReceiptTTL = 1500*time.Millisecond, time.Hour
	})
	name := r.names.name("alice", "k")
	adm := r.admit(t, attempt("alice", "k"), order.Ours)
	require.Equal(t, 1500*time.Millisecond, mini.TTL(name))
	adm.Ticket.Finish(t.Context(), created())
	require.Equal(t, time.Hour, mini.TTL(name))
}

func TestLargeAnswerIsAskedOfTheLedger(t *testing.T) {
	t.Parallel()
	r := open(t, startMini(t).Addr(), func(s *settings) { guardOnly(s); s.options.MaxBody = 4 })
	r.admit(t, attempt("alice", "k"), order.Ours).Ticket.Finish(t.Context(), created())
	adm := r.admit(t, attempt("alice", "k"), order.Bypassed)
	require.InDelta(t, 1, r.bypassed(t, reasonLarge), 0)
	require.Empty(t, r.Peek(t.Context(), "alice", "k"))
	adm.Ticket.Finish(t.Context(), released())
	require.EqualValues(t, kindPointer, r.entry(t, "alice", "k").kind)
}

func TestAnswerThatMayChangeIsNotKept(t *testing.T) {
	t.Parallel()
	r := open(t, startMini(t).Addr(), nil)
	end := created()
	end.Receipt.State = order.Processing
	r.admit(t, attempt("alice", "k"), order.Ours).Ticket.Finish(t.Context(), end)
	r.admit(t, attempt("alice", "k"), order.Ours).Ticket.Finish(t.Context(), released())
}

func TestSecondFinishDoesNothing(t *testing.T) {
	t.Parallel()
	r := open(t, startMini(t).Addr(), nil)
	adm := r.admit(t, attempt("alice", "k"), order.Ours)
	joined := r.admit(t, attempt("alice", "k"), order.Joined)
	adm.Ticket.Finish(t.Context(), created())
	adm.Ticket.Finish(t.Context(), released())
	require.EqualValues(t, kindReceipt, r.entry(t, "alice", "k").kind)
	a, err := wait(t, joined.Flight)
	require.NoError(t, err)
	require.Equal(t, created().Answer, a)

	adm = r.admit(t, attempt("alice", "k2"), order.Ours)
	adm.Ticket.Finish(t.Context(), released())
	adm.Ticket.Finish(t.Context(), created())
	require.False(t, r.has(t, "alice", "k2"))
}

func TestFinishWorksOnACancelledContext(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		r := open(t, startMini(t).Addr(), ways)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.admit(t, attempt("alice", "one"), order.Ours).Ticket.Finish(ctx, created())
		require.EqualValues(t, kindReceipt, r.entry(t, "alice", "one").kind)
		r.admit(t, attempt("alice", "two"), order.Ours).Ticket.Finish(ctx, released())
		require.False(t, r.has(t, "alice", "two"))
	})
}

func TestCallerWhoHasLeftMarksNothing(t *testing.T) {
	t.Parallel()
	r := open(t, startMini(t).Addr(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	adm := r.Admit(ctx, attempt("alice", "k"))
	require.Equal(t, order.Bypassed, adm.Advice)
	require.InDelta(t, 1, r.bypassed(t, reasonCancelled), 0)
	require.False(t, r.has(t, "alice", "k"))
	adm.Ticket.Finish(ctx, released())
}

func TestPeekTellsWhatEachLayerKnows(t *testing.T) {
	t.Parallel()
	mini := startMini(t)
	here, there := open(t, mini.Addr(), nil), open(t, mini.Addr(), nil)
	require.Empty(t, here.Peek(t.Context(), "alice", "k"))

	a := attempt("alice", "k")
	adm := here.admit(t, a, order.Ours)
	seen := here.Peek(t.Context(), "alice", "k")
	require.Len(t, seen, 2)
	require.Equal(t, order.Glimpse{Layer: order.LayerProcess, Running: true, Digest: a.Digest}, seen[0])
	require.True(t, seen[1].Running)
	require.Positive(t, seen[1].Age)
	require.Equal(t, DefaultTuning().InProgressTTL, seen[1].TTL)
	require.Equal(t, seen[1].Digest, there.Peek(t.Context(), "alice", "k")[0].Digest)

	adm.Ticket.Finish(t.Context(), created())
	seen = here.Peek(t.Context(), "alice", "k")
	require.Len(t, seen, 2)
	require.Equal(t, order.LayerProcess, seen[0].Layer)
	require.Positive(t, seen[0].TTL)
	require.Equal(t, receipt(), seen[0].Receipt)
	require.Equal(t, order.Glimpse{
		Layer: order.LayerRedis, Digest: receipt().Digest, Receipt: receipt(), TTL: DefaultTuning().ReceiptTTL,
	}, seen[1])
	mini.Close()
	away := order.Glimpse{Layer: order.LayerRedis, Unavailable: true}
	seen = here.Peek(t.Context(), "alice", "k")
	require.Len(t, seen, 2)
	require.Equal(t, order.LayerProcess, seen[0].Layer)
	require.Equal(t, away, seen[1])
	require.Equal(t, []order.Glimpse{away}, here.Peek(t.Context(), "bob", "k"))
}

func TestGuardAloneNeitherJoinsNorRemembers(t *testing.T) {
	t.Parallel()
	r := open(t, startMini(t).Addr(), guardOnly)
	adm := r.admit(t, attempt("alice", "k"), order.Ours)
	r.admit(t, attempt("alice", "k"), order.Running).Ticket.Finish(t.Context(), order.End{})
	adm.Ticket.Finish(t.Context(), created())
	seen := r.admit(t, attempt("alice", "k"), order.Seen)
	require.Equal(t, order.LayerRedis, seen.Layer)
	seen.Ticket.Finish(t.Context(), order.End{Receipt: seen.Receipt})
	require.Len(t, r.Peek(t.Context(), "alice", "k"), 1)
}

func TestReceiptReadFromTheLedgerReplacesWhatIsThere(t *testing.T) {
	t.Parallel()
	r := open(t, startMini(t).Addr(), guardOnly)
	r.admit(t, attempt("alice", "k"), order.Ours).Ticket.Finish(t.Context(), order.End{}) // a dead gateway's
	r.admit(t, attempt("alice", "k"), order.Running).Ticket.Finish(t.Context(), created())
	seen := r.admit(t, attempt("alice", "k"), order.Seen)
	require.Equal(t, receipt().FirstSeen, seen.Receipt.FirstSeen)
	seen.Ticket.Finish(t.Context(), order.End{})
}
