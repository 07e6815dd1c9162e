package insight

import "time"

// Footprint is the measured memory of an entry in Redis.
type Footprint struct {
	BytesPerKey float64 `json:"bytes"`
	Entries     int     `json:"entries"` // that were measured
	// Overhead says that the server told what its tables need per key; without it
	// only the entries themselves were measured.
	Overhead   bool      `json:"overhead"`
	MeasuredAt time.Time `json:"measured_at"`
}

// TTL is what was observed of retries, and what other TTLs would do.
type TTL struct {
	At                time.Time  `json:"at"`
	Since             time.Time  `json:"since"` // when the observation began
	ObservedSeconds   float64    `json:"observed_seconds"`
	KnownUntilSeconds float64    `json:"known_until_seconds"` // nothing is known of longer TTLs
	CurrentTTLSeconds float64    `json:"current_ttl_seconds"`
	KeysPerSecond     float64    `json:"keys_per_second"`
	RetriesPerSecond  float64    `json:"retries_per_second"`
	BytesPerKey       *Footprint `json:"bytes_per_key"` // null until it was measured
	Retries           Retries    `json:"retries"`
	Target            float64    `json:"target"`
	// LongerThanSeconds is what a TTL must be longer than to be accepted.
	LongerThanSeconds float64 `json:"longer_than_seconds"`
	// Knee is the smallest TTL that is accepted and reaches the target; null when
	// none that is known does.
	Knee *Forecast `json:"knee"`
	// KneeRaised says that a shorter TTL would reach the target, and would not be
	// accepted: the knee is the first whole second that is.
	KneeRaised bool       `json:"knee_raised"`
	Current    Forecast   `json:"current"`
	Forecasts  []Forecast `json:"forecasts"`
}

// Retries are the ages of retries that were seen, whoever answered them.
type Retries struct {
	Count   uint64      `json:"count"`
	Process uint64      `json:"process"` // by who answered
	Redis   uint64      `json:"redis"`
	MySQL   uint64      `json:"mysql"`
	P50     float64     `json:"p50_seconds"`
	P90     float64     `json:"p90_seconds"`
	P99     float64     `json:"p99_seconds"`
	Oldest  float64     `json:"oldest_seconds"`
	Buckets []AgeBucket `json:"buckets"` // only those that have any
}

// AgeBucket counts retries of an age from From to below To, in seconds. The last
// bucket has no end and says -1.
type AgeBucket struct {
	From  float64 `json:"from_seconds"`
	To    float64 `json:"to_seconds"`
	Count uint64  `json:"count"`
}

// TTL returns what was observed and the forecast for each of the TTLs; without
// any, for a list from seconds to a week.
func (r *Recorder) TTL(target float64, ttls ...time.Duration) TTL {
	now := r.o.Now()
	o, retries, since, footprint := r.observed(now)
	t := TTL{
		At: now.UTC(), Since: since.UTC(), ObservedSeconds: o.Seconds, KnownUntilSeconds: o.KnownUntil().Seconds(),
		CurrentTTLSeconds: r.o.ReceiptTTL().Seconds(), BytesPerKey: footprint, Retries: retries, Target: target,
		Forecasts: []Forecast{},
	}
	if o.Seconds > 0 {
		t.KeysPerSecond = float64(o.Keys) / o.Seconds
		t.RetriesPerSecond = float64(retries.Count) / o.Seconds
	}
	bound := r.o.Bound()
	t.LongerThanSeconds = bound.Seconds()
	if knee, ok := o.Knee(target); ok {
		if knee <= bound {
			knee, t.KneeRaised = bound.Truncate(time.Second)+time.Second, true
		}
		f := o.At(knee)
		t.Knee = &f
	}
	t.Current = o.At(r.o.ReceiptTTL())
	if len(ttls) == 0 {
		ttls = usualTTLs()
	}
	for _, ttl := range ttls {
		t.Forecasts = append(t.Forecasts, o.At(ttl))
	}
	return t
}

// usualTTLs are what operators choose from.
func usualTTLs() []time.Duration {
	const day = 24 * time.Hour
	return []time.Duration{
		15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 3 * day, 7 * day,
	}
}

// observed sums the periods up.
func (r *Recorder) observed(now time.Time) (o Observed, seen Retries, since time.Time, footprint *Footprint) {
	r.mu.Lock()
	periods := r.periods.oldest()
	if r.measured {
		f := r.footprint
		footprint = &f
		o.BytesPerKey = f.BytesPerKey
	}
	r.mu.Unlock()

	var by [layers]counts
	for _, p := range periods {
		o.Keys += p.newKeys.Load()
		for l := range p.ages {
			p.ages[l].read(&by[l])
		}
	}
	for l := range by {
		o.ages.plus(&by[l])
	}
	since = periods[0].from
	o.Seconds = now.Sub(since).Seconds()
	return o, retriesOf(&o, &by), since, footprint
}

func retriesOf(o *Observed, by *[layers]counts) Retries {
	seconds := func(q float64) float64 { return o.ages.quantile(q) * ageUnit.Seconds() }
	r := Retries{
		Count: o.Retries(), MySQL: by[0].total(), Redis: by[1].total(), Process: by[2].total(),
		P50: seconds(.5), P90: seconds(.9), P99: seconds(.99), Oldest: o.Oldest().Seconds(), Buckets: []AgeBucket{},
	}
	for i, n := range o.ages {
		if n == 0 {
			continue
		}
		b := AgeBucket{From: float64(lowerBound(i)) * ageUnit.Seconds(), To: -1, Count: n}
		if i < lastBucket {
			b.To = float64(lowerBound(i+1)) * ageUnit.Seconds()
		}
		r.Buckets = append(r.Buckets, b)
	}
	return r
}
