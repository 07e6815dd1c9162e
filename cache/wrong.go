package cache

import (
	"context"
	"sync"
	"time"
)

// cause is why the filter knew nothing of a key that the ledger knew.
type cause string

// The causes, in the order in which they are looked for.
const (
	causeExpired cause = "expired" // the record is older than a receipt lives
	causeFlushed cause = "flushed" // Redis was emptied, restarted or failed over since
	causeOutage  cause = "outage"  // this gateway could not tell Redis of it
	causeEvicted cause = "evicted" // Redis was short of memory since
	causeUnknown cause = "unknown"
)

func causes() []cause {
	return []cause{causeExpired, causeFlushed, causeOutage, causeEvicted, causeUnknown}
}

// clockMargin is how far the database's clock, by which records are dated, may
// differ from this gateway's.
const clockMargin = time.Second

// past is what is known of the time in which a record could have been forgotten.
// The times are those at which it was noticed. The zero value knows nothing.
// Safe for concurrent use.
type past struct {
	mu       sync.Mutex
	last     serverStats
	known    bool // last is
	emptied  time.Time
	evicted  time.Time
	ttl      time.Duration // of receipts
	ttlSince time.Time
	ttlOld   time.Duration
	ttlAt    time.Time // when it was last looked at
}

// serverStats are what a Redis says of itself, all nodes together.
type serverStats struct {
	nodes              map[string]nodeCounts // by the identity of the process
	memory, memoryMost int64                 // bytes; most: zero without a limit
}

// nodeCounts are those of one process since its start.
type nodeCounts struct{ flushes, evicted int64 }

// news is what has changed between two looks.
type news struct {
	emptied bool
	evicted int64
}

// look compares what Redis says with what it said before.
func (p *past) look(now time.Time, s serverStats) (n news) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		for process, counts := range s.nodes {
			before, there := p.last.nodes[process] // one that was not there began empty, with zeros
			n.emptied = n.emptied || !there || counts.flushes > before.flushes
			n.evicted += max(0, counts.evicted-before.evicted)
		}
	}
	if n.emptied {
		p.emptied = now
	}
	if n.evicted > 0 {
		p.evicted = now
	}
	p.last, p.known = s, true
	return n
}

// lives notes the life of receipts that is in force. It changed at some time since
// the last look; of the receipts written since then only those with the shorter
// one can have expired.
func (p *past) lives(now time.Time, ttl time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ttl != p.ttl {
		since := now
		if ttl < p.ttl {
			since = p.ttlAt
		}
		p.ttlOld, p.ttl, p.ttlSince = p.ttl, ttl, since
	}
	p.ttlAt = now
}

// judge says why a record of this age was not known. Redis cannot be asked what
// it has forgotten, so all but the first are circumstances, not proof.
func (p *past) judge(now time.Time, age time.Duration, troubled time.Time) cause {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := now.Add(-age - clockMargin)
	life := p.ttl
	if p.ttlOld > 0 && made.Before(p.ttlSince) {
		life = p.ttlOld // its receipt was written with that one
	}
	switch {
	case life > 0 && age+clockMargin >= life:
		return causeExpired
	case p.emptied.After(made):
		return causeFlushed
	case troubled.After(made):
		return causeOutage
	case p.evicted.After(made):
		return causeEvicted
	default:
		return causeUnknown
	}
}

// miss is one record that the filter should have known.
type miss struct {
	at  time.Time
	age time.Duration
}

// maxMisses bounds those that wait to be judged.
const maxMisses = 1024

// Missed tells the filter that it knew nothing of a key whose record is this
// old. [Filter.Watch] finds out why. It does not wait.
func (f *Filter) Missed(age time.Duration) {
	select {
	case f.misses <- miss{f.o.Now(), age}:
	default:
		f.guard.metrics.wrong[causeUnknown].Inc()
	}
}

// How often Redis is asked about itself: now and then, and when the filter was
// wrong, but not for every single time.
const (
	watchEvery   = 10 * time.Second
	watchAtLeast = time.Second
)

// Watch asks Redis now and then what became of its memory, publishes it, and
// judges what [Filter.Missed] told, until ctx ends. It is to be run once.
func (f *Filter) Watch(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	looked := f.o.Now()
	f.look(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			looked = f.o.Now()
			f.look(ctx)
		case m := <-f.misses:
			if now := f.o.Now(); now.Sub(looked) >= watchAtLeast {
				looked = now
				f.look(ctx)
			}
			why := f.past.judge(m.at, m.age, f.guard.breaker.troubled())
			f.guard.metrics.wrong[why].Inc()
		}
	}
}
