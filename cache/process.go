package cache

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/oncegate/oncegate/order"
)

// process is the tier within this process: requests that are being decided,
// and receipts that were.
type process struct {
	seed   maphash.Seed
	shards [64]shard
}

type shard struct {
	mu       sync.Mutex
	flights  map[slot]*flight
	receipts *receipts
}

// flight is an attempt that is being decided; those with the same content wait
// for it.
type flight struct {
	digest order.Digest
	done   chan struct{} // closed when answer and err are set
	answer order.Answer
	err    error
}

// Wait implements [order.Flight].
func (f *flight) Wait(ctx context.Context) (order.Answer, error) {
	select {
	case <-f.done:
		return f.answer, f.err
	case <-ctx.Done():
		select {
		case <-f.done: // both were ready: an answer is worth more
			return f.answer, f.err
		default:
			return order.Answer{}, ctx.Err()
		}
	}
}

func newProcess(entries, bytes int) *process {
	p := &process{seed: maphash.MakeSeed()}
	for i := range p.shards {
		p.shards[i].flights = map[slot]*flight{}
		p.shards[i].receipts = newReceipts(entries/len(p.shards), bytes/len(p.shards))
	}
	return p
}

func (p *process) shard(s slot) *shard {
	var h maphash.Hash
	h.SetSeed(p.seed)
	_, _ = h.WriteString(s.user)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(string(s.key))
	return &p.shards[h.Sum64()%uint64(len(p.shards))]
}

// admit tells what this process knows. When it knows nothing it registers the
// attempt as a flight, which must be landed.
func (p *process) admit(a order.Attempt, now time.Time) (order.Admission, *flight) {
	s := slot{a.UserID, a.Key}
	sh := p.shard(s)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if f, ok := sh.flights[s]; ok {
		if f.digest == a.Digest {
			return order.Admission{Advice: order.Joined, Layer: order.LayerProcess, Flight: f}, nil
		}
		return order.Admission{Advice: order.Running, Layer: order.LayerProcess, Digest: f.digest}, nil
	}
	if r, ok := sh.receipts.get(s, now); ok {
		return order.Admission{Advice: order.Seen, Layer: order.LayerProcess, Digest: r.Digest, Receipt: r}, nil
	}
	f := &flight{digest: a.Digest, done: make(chan struct{})}
	sh.flights[s] = f
	return order.Admission{}, f
}

// land ends a flight. The receipt, if there is one, is remembered in the same
// moment, so that whoever comes next meets one of the two.
func (p *process) land(a order.Attempt, f *flight, end *order.End, until time.Time) {
	s := slot{a.UserID, a.Key}
	sh := p.shard(s)
	sh.mu.Lock()
	if sh.flights[s] != f {
		sh.mu.Unlock()
		return // landed before
	}
	delete(sh.flights, s)
	if end.Receipt.State != 0 && !until.IsZero() {
		sh.receipts.put(s, end.Receipt, until)
	}
	sh.mu.Unlock()
	f.answer, f.err = end.Answer, end.Err
	close(f.done)
}

func (p *process) peek(s slot, now time.Time) (order.Glimpse, bool) {
	sh := p.shard(s)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if f, ok := sh.flights[s]; ok {
		return order.Glimpse{Layer: order.LayerProcess, Running: true, Digest: f.digest}, true
	}
	e, ok := sh.receipts.bySlot[s]
	if !ok {
		return order.Glimpse{}, false
	}
	m := e.Value.(*remembered) //nolint:forcetypeassert // the list holds nothing else
	if !now.Before(m.until) {
		return order.Glimpse{}, false
	}
	return order.Glimpse{Layer: order.LayerProcess, Digest: m.receipt.Digest, Receipt: m.receipt, TTL: m.until.Sub(now)}, true
}

// size sums the shards up.
func (p *process) size() (entries, bytes int) {
	for i := range p.shards {
		sh := &p.shards[i]
		sh.mu.Lock()
		entries += len(sh.receipts.bySlot)
		bytes += sh.receipts.bytes
		sh.mu.Unlock()
	}
	return entries, bytes
}
