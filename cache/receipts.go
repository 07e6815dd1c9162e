package cache

import (
	"container/list"
	"time"

	"github.com/oncegate/oncegate/order"
)

// slot names what the process tier knows: one user's key.
type slot struct {
	user string
	key  order.Key
}

// receipts is a bounded memory of answers, least recently used first out.
// Not safe for concurrent use: its shard's lock guards it.
type receipts struct {
	maxEntries, maxBytes int
	life                 func() time.Duration // of an entry; none is kept while it is zero
	clock                func() time.Time
	bytes                int
	byAge                *list.List // of *remembered, most recent in front
	bySlot               map[slot]*list.Element
}

type remembered struct {
	place   *list.Element
	slot    slot
	receipt order.Receipt
	since   time.Time
	size    int
}

// overhead is about what an entry costs beside its texts.
const overhead = 320

func newReceipts(maxEntries, maxBytes int, life func() time.Duration, clock func() time.Time) *receipts {
	return &receipts{
		maxEntries: maxEntries, maxBytes: maxBytes, life: life, clock: clock,
		byAge: list.New(), bySlot: map[slot]*list.Element{},
	}
}

// get returns the entry of a slot, nil when there is none, and what is left of its
// life. How long that is may have changed since it was put there.
func (r *receipts) get(s slot) (m *remembered, left time.Duration) {
	e, ok := r.bySlot[s]
	if !ok {
		return nil, 0
	}
	m = e.Value.(*remembered) //nolint:forcetypeassert // the list holds nothing else
	if left = r.life() - r.clock().Sub(m.since); left <= 0 {
		r.remove(e)
		return nil, 0
	}
	return m, left
}

// use is get for a caller who answers from the entry.
func (r *receipts) use(s slot) *remembered {
	m, _ := r.get(s)
	if m != nil {
		r.byAge.MoveToFront(m.place)
	}
	return m
}

// put remembers a receipt, unless it is too large for the whole memory.
func (r *receipts) put(s slot, receipt *order.Receipt) {
	if e, ok := r.bySlot[s]; ok {
		r.remove(e)
	}
	resp := &receipt.Response
	m := &remembered{slot: s, receipt: *receipt, since: r.clock()}
	m.size = overhead + len(s.user) + len(s.key) + len(resp.ContentType) + len(resp.Location) + len(resp.Body)
	if m.size > r.maxBytes || r.life() <= 0 {
		return
	}
	m.place = r.byAge.PushFront(m)
	r.bySlot[s] = m.place
	r.bytes += m.size
	for r.bytes > r.maxBytes || len(r.bySlot) > r.maxEntries {
		r.remove(r.byAge.Back())
	}
}

func (r *receipts) remove(e *list.Element) {
	m := r.byAge.Remove(e).(*remembered) //nolint:forcetypeassert // the list holds nothing else
	delete(r.bySlot, m.slot)
	r.bytes -= m.size
}
