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
	bytes                int
	byAge                *list.List // of *remembered, most recent in front
	bySlot               map[slot]*list.Element
}

type remembered struct {
	place   *list.Element
	slot    slot
	receipt order.Receipt
	until   time.Time
	size    int
}

// overhead is about what an entry costs beside its texts.
const overhead = 320

func newReceipts(maxEntries, maxBytes int) *receipts {
	return &receipts{maxEntries: maxEntries, maxBytes: maxBytes, byAge: list.New(), bySlot: map[slot]*list.Element{}}
}

// get returns the entry of a slot while it lives.
func (r *receipts) get(s slot, clock func() time.Time) (m *remembered, ok bool) {
	e, ok := r.bySlot[s]
	if !ok {
		return nil, false
	}
	m = e.Value.(*remembered) //nolint:forcetypeassert // the list holds nothing else
	if !clock().Before(m.until) {
		r.remove(e)
		return nil, false
	}
	return m, true
}

// use is get for a caller who answers from the entry.
func (r *receipts) use(s slot, clock func() time.Time) (m *remembered, ok bool) {
	if m, ok = r.get(s, clock); ok {
		r.byAge.MoveToFront(m.place)
	}
	return m, ok
}

// put remembers a receipt, unless it is too large for the whole memory.
func (r *receipts) put(s slot, receipt *order.Receipt, until time.Time) {
	if e, ok := r.bySlot[s]; ok {
		r.remove(e)
	}
	resp := &receipt.Response
	m := &remembered{slot: s, receipt: *receipt, until: until}
	m.size = overhead + len(s.user) + len(s.key) + len(resp.ContentType) + len(resp.Location) + len(resp.Body)
	if m.size > r.maxBytes {
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
