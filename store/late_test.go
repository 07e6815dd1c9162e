package store

import (
	"hash/maphash"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// A queue that is as old as those in it are patient serves nobody: who would be
// answered too late is told so at once, and those in front are answered in time.
func TestWhoWouldBeAnsweredTooLateIsRefused(t *testing.T) {
	t.Parallel()
	now := time.Now() // it stands: how long they wait is this test's to say
	h := openHarness(t, Options{DSN: sqliteDatabase(t), MaxBatch: 2, Now: func() time.Time { return now }})
	w := &worker{s: h.Store, stop: t.Context(), queue: make(chan *pending, 10)}
	l := &ledger{s: h.Store, seed: maphash.MakeSeed(), byHash: []*worker{w}}
	come := func(waits, patience time.Duration) error {
		return l.enqueue(&pending{cmd: command(t, "ann", "k", potsticker(1_00)), queued: now.Add(-waits), deadline: now.Add(patience - waits)})
	}
	require.NoError(t, come(4*time.Second, 6*time.Second), "nothing is known of the queue")
	w.gather(w.waiting())
	require.NoError(t, come(0, 6*time.Second), "what waits is one group")
	require.NoError(t, come(0, 6*time.Second), "as before")
	require.ErrorIs(t, come(0, 6*time.Second), order.ErrOverloaded)
	require.NoError(t, come(0, time.Minute), "who has time may wait")
	w.gather(w.waiting())
	require.NoError(t, come(0, 6*time.Second))
	require.NoError(t, come(0, 6*time.Second), "those in front have not waited")
	w.took.Store(int64(time.Second))
	require.NoError(t, come(0, 6*time.Second), "there is one group before it, and a second to wait for")
	require.NoError(t, come(0, 6*time.Second), "as before")
	require.ErrorIs(t, come(0, 5*time.Second), order.ErrOverloaded, "it would wait for the second and the third second")
	require.NoError(t, come(0, 6*time.Second), "and that is its half")
}

// Large requests are groups of their own: their number tells nothing.
func TestManyRowsAreAQueueAsManyRequestsAre(t *testing.T) {
	t.Parallel()
	now := time.Now() // it stands, as above
	h := openHarness(t, Options{DSN: sqliteDatabase(t), MaxBatch: 128, MaxRows: 2, Now: func() time.Time { return now }})
	w := &worker{s: h.Store, stop: t.Context(), queue: make(chan *pending, 10)}
	l := &ledger{s: h.Store, seed: maphash.MakeSeed(), byHash: []*worker{w}}
	w.took.Store(int64(time.Second))
	come := func() error {
		lines := []order.Line{potsticker(1_00), potsticker(1_00)}
		lines[0].ExternalOrderNo, lines[1].ExternalOrderNo = "one", "two"
		c := command(t, "ann", "k", lines...)
		return l.enqueue(&pending{cmd: c, queued: now, deadline: now.Add(6 * time.Second)})
	}
	for range 3 {
		require.NoError(t, come())
	}
	require.ErrorIs(t, come(), order.ErrOverloaded, "it would wait for four seconds")
	w.gather(w.waiting())
	require.NoError(t, come(), "one of them is in hand")
}
