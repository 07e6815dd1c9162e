package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func numbered(i int) slot { return slot{"alice", order.Key(fmt.Sprint("k", i))} }

func minute() time.Duration { return time.Minute }

func TestReceiptsAreBoundedByEntriesOldestUseFirst(t *testing.T) {
	t.Parallel()
	r := newReceipts(3, 1<<20, minute, time.Now)
	one := receipt()
	for i := range 3 {
		r.put(numbered(i), &one)
	}
	require.NotNil(t, r.use(numbered(0)))
	looked, _ := r.get(numbered(1)) // looking is not using
	require.NotNil(t, looked)
	r.put(numbered(3), &one)
	require.Len(t, r.bySlot, 3)
	require.Nil(t, r.use(numbered(1)))
	require.NotNil(t, r.use(numbered(0)))
}

func TestReceiptsAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	one := receipt()
	one.Response.Body = make([]byte, 1000)
	const limit = 5000
	r := newReceipts(1000, limit, minute, time.Now)
	for i := range 100 {
		r.put(numbered(i), &one)
		require.LessOrEqual(t, r.bytes, limit)
	}
	require.Len(t, r.bySlot, 3)
	for i := range 3 {
		require.NotNil(t, r.use(numbered(97+i)))
	}
	one.Response.Body = make([]byte, limit)
	r.put(numbered(99), &one) // larger than all memory: forgets what it had, and nothing else
	require.Len(t, r.bySlot, 2)
}

func TestReceiptsExpireAndGiveTheirBytesBack(t *testing.T) {
	t.Parallel()
	c := newClock()
	r := newReceipts(10, 1<<20, minute, c.Now)
	one := receipt()
	r.put(numbered(1), &one)
	r.put(numbered(1), &one)
	require.Len(t, r.bySlot, 1)
	c.move(time.Minute - 1)
	m, left := r.get(numbered(1))
	require.NotNil(t, m)
	require.Equal(t, time.Duration(1), left)
	c.move(1)
	require.Nil(t, r.use(numbered(1)))
	require.Zero(t, r.bytes)
	require.Zero(t, r.byAge.Len())
}

// Who shortens their life wants the receipts of before to end as well.
func TestReceiptsLiveAsLongAsIsInForce(t *testing.T) {
	t.Parallel()
	c := newClock()
	life := time.Hour
	r := newReceipts(10, 1<<20, func() time.Duration { return life }, c.Now)
	one := receipt()
	r.put(numbered(1), &one)
	r.put(numbered(2), &one)
	c.move(time.Minute)
	life = time.Minute + 1
	require.NotNil(t, r.use(numbered(1)))
	life = time.Minute
	require.Nil(t, r.use(numbered(1)))
	life = 0
	r.put(numbered(1), &one)
	require.Nil(t, r.use(numbered(2)))
	require.Empty(t, r.bySlot, "nothing is kept")
	require.Zero(t, r.bytes)
}

func TestBoundsHoldForTheWholeProcess(t *testing.T) {
	t.Parallel()
	one := receipt()
	one.Response.Body = make([]byte, 700)
	for _, limit := range []struct{ entries, bytes int }{{1, 1 << 20}, {5, 1 << 20}, {100, 1 << 20}, {10_000, 100_000}, {10_000, 1 << 20}, {10, 10}} {
		p := newProcess(limit.entries, limit.bytes, minute, time.Now)
		for i := range 3000 {
			a := attempt("alice", numbered(i).key)
			_, f := p.admit(&a)
			end := created()
			end.Receipt = one
			p.end(f, &end)
		}
		entries, bytes := p.size()
		require.LessOrEqual(t, entries, limit.entries)
		require.LessOrEqual(t, bytes, limit.bytes)
		if limit.bytes > 10 {
			require.Positive(t, entries)
		}
	}
}
