package cache

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/oncegate/oncegate/order"
)

// process is the tier within this process: requests that are being decided,
// and receipts that were. A lock covers a share of the keys only.
type process struct {
	seed   maphash.Seed
	shards []shard
}

type shard struct {
	mu       sync.Mutex
	flights  map[slot]*flight
	receipts *receipts
}

// Limits of what is split: no more shards than make a difference, and none that
// could not hold a receipt of usual size.
const (
	maxShards     = 64
	minShardBytes = 64 << 10
)

func newProcess(entries, bytes int, life func() time.Duration, clock func() time.Time) *process {
	n := max(1, min(maxShards, entries, bytes/minShardBytes))
	p := &process{seed: maphash.MakeSeed(), shards: make([]shard, n)}
	for i := range p.shards {
		p.shards[i].flights = map[slot]*flight{}
		p.shards[i].receipts = newReceipts(entries/n, bytes/n, life, clock)
	}
	return p
}

func (p *process) shard(s slot) *shard {
	h := maphash.String(p.seed, s.user)*31 + maphash.String(p.seed, string(s.key))
	return &p.shards[h%uint64(len(p.shards))]
}

// admit tells what this process knows. When it knows nothing it registers the
// attempt as a flight, which must be ended.
func (p *process) admit(a *order.Attempt) (order.Admission, *flight) {
	s := slot{a.UserID, a.Key}
	sh := p.shard(s)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if m := sh.receipts.use(s); m != nil {
		return order.Admission{Advice: order.Seen, Layer: order.LayerProcess, Receipt: m.receipt}, nil
	}
	if f, ok := sh.flights[s]; ok {
		if f.digest == a.Digest {
			return order.Admission{Advice: order.Joined, Layer: order.LayerProcess, Flight: f.join()}, nil
		}
		return order.Admission{Advice: order.Running, Layer: order.LayerProcess, Digest: f.digest}, nil
	}
	f := &flight{slot: s, digest: a.Digest}
	sh.flights[s] = f
	return order.Admission{}, f
}

// land gives those who joined their answer and remembers the receipt, if it is
// final. Until it is ended, a landed flight still answers whoever comes.
func (p *process) land(f *flight, end *order.End) {
	sh := p.shard(f.slot)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.land(f, end)
}

// end lands a flight that has not, and takes it off the board in the same
// moment: nobody joins an attempt that has failed already.
func (p *process) end(f *flight, end *order.End) {
	sh := p.shard(f.slot)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.flights[f.slot] == f {
		delete(sh.flights, f.slot)
	}
	sh.land(f, end)
}

// land lands a flight. The caller holds the lock.
func (sh *shard) land(f *flight, end *order.End) {
	if f.land(end) && final(&end.Receipt) {
		sh.receipts.put(f.slot, &end.Receipt)
	}
}

func (p *process) peek(s slot) (order.Glimpse, bool) {
	sh := p.shard(s)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if m, left := sh.receipts.get(s); m != nil {
		return order.Glimpse{Layer: order.LayerProcess, Digest: m.receipt.Digest, Receipt: m.receipt, TTL: left}, true
	}
	if f, ok := sh.flights[s]; ok {
		return order.Glimpse{Layer: order.LayerProcess, Running: true, Digest: f.digest}, true
	}
	return order.Glimpse{}, false
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
