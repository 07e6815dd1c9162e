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
	slot    slot
	receipt order.Receipt
	until   time.Time
	size    int
}

// overhead is about what an entry costs beside its texts.
const overhead = 320

func newReceipts(maxEntries, maxBytes int) *receipts {
	return &receipts{maxEntries: max(1, maxEntries), maxBytes: maxBytes, byAge: list.New(), bySlot: map[slot]*list.Element{}}
}

func (r *receipts) get(s slot, now time.Time) (order.Receipt, bool) {
	e, ok := r.bySlot[s]
	if !ok {
		return order.Receipt{}, false
	}
	m := e.Value.(*remembered) //nolint:forcetypeassert // the list holds nothing else
	if !now.Before(m.until) {
		r.remove(e)
		return order.Receipt{}, false
	}
	r.byAge.MoveToFront(e)
	return m.receipt, true
}

func (r *receipts) put(s slot, receipt order.Receipt, until time.Time) {
	if e, ok := r.bySlot[s]; ok {
		r.remove(e)
	}
	m := &remembered{slot: s, receipt: receipt, until: until}
	m.size = overhead + len(s.user) + len(s.key) + len(receipt.Response.Body) + len(receipt.Response.Location)
	if m.size > r.maxBytes {
		return
	}
	r.bySlot[s] = r.byAge.PushFront(m)
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
