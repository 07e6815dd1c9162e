package insight

import (
	"context"
	"sync"
	"time"
)

// second is what was counted up to a moment.
type second struct {
	at        time.Time
	total     [cellCount]uint64
	conflicts uint64
}

// snapshot is all of the latencies up to a moment.
type snapshot struct {
	at   time.Time
	took [cellCount]counts
}

// Run takes samples, measures entries and tells those who listen, until ctx
// ends; then the events end, too.
func (r *Recorder) Run(ctx context.Context) {
	defer r.Close()
	var measuring sync.WaitGroup
	defer measuring.Wait()
	if r.o.Footprint != nil {
		measuring.Go(func() { r.measure(ctx) })
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.sample(n%snapshotEvery == 0)
			if r.feed.wanted() {
				r.feed.publish("stats", r.stats(ctx))
			}
		}
	}
}

// sample notes what was counted up to now; a large one also how long it took.
func (r *Recorder) sample(large bool) {
	now := r.o.Now()
	s := r.second(now)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seconds.put(s)
	if now.Sub(r.period.Load().from) >= periodLength {
		r.begin(now)
	}
	if large {
		r.history.put(r.point(s))
		r.snapshots.put(r.photograph(now))
	}
}

func (r *Recorder) second(now time.Time) second { return second{now, r.totals(), r.conflicted.Load()} }

func (r *Recorder) photograph(now time.Time) *snapshot {
	s := &snapshot{at: now}
	for i := range r.took {
		r.took[i].read(&s.took[i])
	}
	return s
}

// recent is what took how long in the last minute. The caller holds mu.
func (r *Recorder) recent() *snapshot {
	now := r.photograph(r.o.Now())
	before := r.snapshots.at(0)
	for i := range now.took {
		now.took[i] = now.took[i].since(&before.took[i])
	}
	return now
}

func ratesBetween(from, to second) Rates {
	var d [cellCount]uint64
	for i := range d {
		d[i] = to.total[i] - from.total[i]
	}
	t := totalsOf(&d)
	window := max(tick, to.at.Sub(from.at)).Seconds()
	per := func(n uint64) float64 { return float64(n) / window }
	return Rates{
		WindowSeconds: window,
		Received:      per(t.Received), Created: per(t.Created + t.Accepted), Duplicates: per(t.Duplicates),
		Conflicts: per(to.conflicts - from.conflicts), Rejected: per(t.Rejected), Failed: per(t.Failed),
	}
}

// point makes a moment of the history. The caller holds mu.
func (r *Recorder) point(s second) Point {
	from := r.seconds.at(max(0, r.seconds.len()-1-snapshotEvery))
	var d [cellCount]uint64
	for i := range d {
		d[i] = s.total[i] - from.total[i]
	}
	t := totalsOf(&d)
	window := max(tick, s.at.Sub(from.at)).Seconds()
	p := Point{
		At: s.at.UTC(), Process: float64(t.Process) / window, Redis: float64(t.Redis) / window, MySQL: float64(t.MySQL) / window,
		Created: float64(t.Created+t.Accepted) / window, Rejected: float64(t.Rejected) / window, Failed: float64(t.Failed) / window,
		Latency: map[string][2]float64{},
	}
	for _, l := range latencies(r.recent()) {
		p.Latency[l.Outcome] = [2]float64{l.P50, l.P99}
	}
	return p
}

// latencies sums cells up to outcomes.
func latencies(s *snapshot) []Latency {
	all := make([]Latency, 0, len(outcomes()))
	for _, name := range outcomes() {
		var sum counts
		for i := range s.took {
			if cell(i).outcome() == name {
				sum.plus(&s.took[i])
			}
		}
		n := sum.total()
		if n == 0 {
			continue
		}
		ms := func(q float64) float64 { return sum.quantile(q) / 1000 }
		all = append(all, Latency{Outcome: name, Count: n, P50: ms(.5), P95: ms(.95), P99: ms(.99), P999: ms(.999)})
	}
	return all
}

// measure follows the size of entries until ctx ends. It tries often at first:
// there is nothing to measure before the first order, and little after it.
func (r *Recorder) measure(ctx context.Context) {
	pause := tick
	failing := false
	for {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		f, err := r.o.Footprint(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !failing {
				r.o.Logger.InfoContext(ctx, "the memory of an entry in Redis cannot be measured", "error", err)
			}
		case f.Entries > 0:
			f.MeasuredAt = r.o.Now().UTC()
			r.mu.Lock()
			r.footprint, r.measured = f, true
			r.mu.Unlock()
		}
		failing = err != nil
		pause = min(2*pause, measureEvery)
	}
}
