package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func numbered(i int) slot { return slot{"alice", order.Key(fmt.Sprint("k", i))} }

func TestReceiptsAreBoundedByEntriesOldestUseFirst(t *testing.T) {
	t.Parallel()
	c := newClock()
	r, until := newReceipts(3, 1<<20), c.Now().Add(time.Minute)
	one := receipt()
	for i := range 3 {
		r.put(numbered(i), &one, until)
	}
	_, ok := r.use(numbered(0), c.Now)
	require.True(t, ok)
	_, ok = r.get(numbered(1), c.Now) // looking is not using
	require.True(t, ok)
	r.put(numbered(3), &one, until)
	require.Len(t, r.bySlot, 3)
	_, ok = r.get(numbered(1), c.Now)
	require.False(t, ok)
	_, ok = r.get(numbered(0), c.Now)
	require.True(t, ok)
}

func TestReceiptsAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	c := newClock()
	one := receipt()
	one.Response.Body = make([]byte, 1000)
	const limit = 5000
	r, until := newReceipts(1000, limit), c.Now().Add(time.Minute)
	for i := range 100 {
		r.put(numbered(i), &one, until)
		require.LessOrEqual(t, r.bytes, limit)
	}
	require.Len(t, r.bySlot, 3)
	for i := range 3 {
		_, ok := r.get(numbered(97+i), c.Now)
		require.True(t, ok)
	}
	one.Response.Body = make([]byte, limit)
	r.put(numbered(99), &one, until) // larger than all memory: forgets what it had, and nothing else
	require.Len(t, r.bySlot, 2)
}

func TestReceiptsExpireAndGiveTheirBytesBack(t *testing.T) {
	t.Parallel()
	c := newClock()
	r := newReceipts(10, 1<<20)
	one := receipt()
	r.put(numbered(1), &one, c.Now().Add(time.Minute))
	r.put(numbered(1), &one, c.Now().Add(time.Minute))
	require.Len(t, r.bySlot, 1)
	c.move(time.Minute - 1)
	_, ok := r.use(numbered(1), c.Now)
	require.True(t, ok)
	c.move(1)
	_, ok = r.use(numbered(1), c.Now)
	require.False(t, ok)
	require.Zero(t, r.bytes)
	require.Zero(t, r.byAge.Len())
}

func TestBoundsHoldForTheWholeProcess(t *testing.T) {
	t.Parallel()
	one := receipt()
	one.Response.Body = make([]byte, 700)
	for _, limit := range []struct{ entries, bytes int }{{1, 1 << 20}, {5, 1 << 20}, {100, 1 << 20}, {10_000, 100_000}, {10_000, 1 << 20}, {10, 10}} {
		p := newProcess(limit.entries, limit.bytes, time.Now)
		for i := range 3000 {
			a := attempt("alice", numbered(i).key)
			_, f := p.admit(&a)
			end := created()
			end.Receipt = one
			p.end(f, &end, time.Minute)
		}
		entries, bytes := p.size()
		require.LessOrEqual(t, entries, limit.entries)
		require.LessOrEqual(t, bytes, limit.bytes)
		if limit.bytes > 10 {
			require.Positive(t, entries)
		}
	}
}
