package insight

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncegate/oncegate/order"
)

// Options are what a [Recorder] is made of.
type Options struct {
	Now    func() time.Time // required
	Logger *slog.Logger     // required
	// ReceiptTTL is the time that Redis remembers an answer now. Required.
	ReceiptTTL func() time.Duration
	// Bound is what a TTL of receipts must be longer than to be accepted.
	// Default: nothing.
	Bound func() time.Duration
	// Footprint measures the memory of an entry in Redis; bounded by itself.
	// Default: it is not known.
	Footprint func(ctx context.Context) (Footprint, error)
	// State tells of what surrounds the gateway; asked at most once a second.
	// Default: it is not known.
	State func(ctx context.Context) State
}

// Recorder is told what the gateway does and answers what operators ask. Safe
// for concurrent use. [Recorder.Run] must run for rates, histories and events.
type Recorder struct {
	o       Options
	started time.Time

	took       [cellCount]histogram // in microseconds
	anomalies  [3]atomic.Uint64
	conflicted atomic.Uint64
	period     atomic.Pointer[period] // the newest of periods

	mu        sync.Mutex
	periods   *ring[*period]
	seconds   *ring[second]
	snapshots *ring[*snapshot]
	history   *ring[Point]
	conflicts *ring[Conflict]
	breaker   *ring[Transition]
	footprint Footprint
	measured  bool

	feed feed
}

var _ order.Observer = (*Recorder)(nil)

// The bounds of what is kept.
const (
	periodLength  = 24 * time.Hour // retries are kept in periods of this length
	periodsKept   = 8
	tick          = time.Second
	rateWindow    = 10 // seconds
	snapshotEvery = 5  // seconds
	snapshotsKept = 13 // so latencies are those of the last minute
	historyKept   = 180
	conflictsKept = 500
	breakerKept   = 200
	measureEvery  = time.Minute
)

// New makes a recorder that has seen nothing.
func New(o Options) (*Recorder, error) {
	if o.Now == nil || o.Logger == nil || o.ReceiptTTL == nil {
		return nil, errors.New("insight: an option is missing")
	}
	if o.Bound == nil {
		o.Bound = func() time.Duration { return 0 }
	}
	now := o.Now()
	r := &Recorder{
		o: o, started: now,
		periods:   newRing[*period](periodsKept),
		seconds:   newRing[second](rateWindow + 1),
		snapshots: newRing[*snapshot](snapshotsKept),
		history:   newRing[Point](historyKept),
		conflicts: newRing[Conflict](conflictsKept),
		breaker:   newRing[Transition](breakerKept),
	}
	r.begin(now)
	r.seconds.put(second{at: now})
	r.snapshots.put(&snapshot{at: now})
	return r, nil
}

// Decided implements [order.Observer]. It adds to two counters.
func (r *Recorder) Decided(a order.Answer, err error, took time.Duration) {
	c := cellOf(&a, err)
	r.took[c].add(units(took, time.Microsecond))
	if c == failedCell {
		return
	}
	r.period.Load().add(c, a.Age)
}

// Noticed implements [order.Observer].
func (r *Recorder) Noticed(a order.Anomaly, _ time.Duration) {
	switch a {
	case order.FilterMissed:
		r.anomalies[0].Add(1)
	case order.ReceiptLost:
		r.anomalies[1].Add(1)
	case order.StaleMark:
		r.anomalies[2].Add(1)
	}
}

func units(d, unit time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64(d / unit) //nolint:gosec // G115: above zero
}

// period holds what was seen of retries within one length of time, so that what
// clients did long ago is forgotten.
type period struct {
	from    time.Time
	ages    [layers]histogram // of retries, in milliseconds, by who answered
	newKeys atomic.Uint64
}

func (p *period) add(c cell, age time.Duration) {
	switch {
	case c.isRetry():
		p.ages[c.layer()].add(units(age, time.Millisecond))
	case c.isNewKey():
		p.newKeys.Add(1)
	}
}

// begin opens a period. The caller holds mu, or is alone.
func (r *Recorder) begin(now time.Time) {
	p := &period{from: now}
	r.periods.put(p)
	r.period.Store(p)
}

// Conflict is a request that a client should not have sent.
type Conflict struct {
	At time.Time `json:"at"`
	// Client is a keyed hash of the user.
	Client string `json:"client"`
	// Agent is what the client calls itself, its first word only.
	Agent string `json:"agent"`
	// Code is that of the problem document.
	Code string `json:"code"`
	// Reason says more than the code: which layer knew the key, or how the
	// business number is taken.
	Reason string `json:"reason"`
	// Digest is the beginning of the request's digest.
	Digest string `json:"digest"`
}

// Conflicted notes a conflict. Rare enough for a lock.
func (r *Recorder) Conflicted(c Conflict) {
	r.conflicted.Add(1)
	r.mu.Lock()
	r.conflicts.put(c)
	r.mu.Unlock()
	r.feed.conflict(r.o.Now(), c)
}

// Conflicts returns the last conflicts, the newest first.
func (r *Recorder) Conflicts() []Conflict {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conflicts.newest()
}

// Transition is a move of the Redis breaker.
type Transition struct {
	At     time.Time `json:"at"`
	From   string    `json:"from"`
	To     string    `json:"to"` // closed, half-open or open
	Reason string    `json:"reason"`
}

// BreakerMoved notes a move of the breaker. It does not wait for anybody: the
// breaker calls it under its own lock.
func (r *Recorder) BreakerMoved(from, to, reason string) {
	t := Transition{At: r.o.Now().UTC(), From: from, To: to, Reason: reason}
	r.mu.Lock()
	r.breaker.put(t)
	r.mu.Unlock()
	r.feed.publish("breaker", t)
}

// Breaker returns the last moves, the newest first.
func (r *Recorder) Breaker() []Transition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.breaker.newest()
}

// breakerNow is the state the breaker is in, and since when.
func (r *Recorder) breakerNow() BreakerState {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.breaker.len()
	if n == 0 {
		return BreakerState{State: "closed", Since: r.started.UTC()}
	}
	last := r.breaker.at(n - 1)
	return BreakerState{State: last.To, Since: last.At}
}
