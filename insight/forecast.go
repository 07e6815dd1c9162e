package insight

import (
	"math"
	"time"
)

// Observed is what is known of retries: what a forecast is made from.
type Observed struct {
	// Ages of retries, in milliseconds, whoever answered them. The database
	// answers those that Redis has forgotten, so late ones are in it as well:
	// the ages do not depend on the TTL that was in force.
	ages counts
	// Seconds is how long it was observed.
	Seconds float64
	// Keys is how many new keys came in that time.
	Keys uint64
	// BytesPerKey is the memory of an entry in Redis; zero: not known.
	BytesPerKey float64
}

// Forecast is what a TTL of receipts would do.
type Forecast struct {
	TTLSeconds float64 `json:"ttl_seconds"`
	// Known is false beyond [Observed.KnownUntil], and when there is nothing to
	// tell from: then the numbers say nothing.
	Known bool `json:"known"`
	// Share of the retries that would be answered before the database, and the
	// bounds within which it is with 95 % confidence (Wilson's interval).
	Share     float64 `json:"share"`
	ShareLow  float64 `json:"share_low"`
	ShareHigh float64 `json:"share_high"`
	Sample    uint64  `json:"sample"` // retries that this was counted from
	// Retries per second that the database would have to answer, and the bounds of
	// that rate with 95 % confidence: how many came is chance as well (the score
	// interval of a Poisson mean).
	MySQLPerSecond     float64 `json:"mysql_per_second"`
	MySQLPerSecondLow  float64 `json:"mysql_per_second_low"`
	MySQLPerSecondHigh float64 `json:"mysql_per_second_high"`
	// RedisBytes is the memory of the entries: how many are written per second,
	// for how long, of what size. Zero when the size is not known.
	RedisBytes float64 `json:"redis_bytes"`
}

// ageUnit is what ages are counted in.
const ageUnit = time.Millisecond

// Retries is the size of the sample.
func (o *Observed) Retries() uint64 { return o.ages.total() }

// Oldest is the age of the oldest retry, rounded up to the end of its bucket;
// zero without retries.
func (o *Observed) Oldest() time.Duration {
	for i := lastBucket; i >= 0; i-- {
		if o.ages[i] > 0 {
			return time.Duration(lowerBound(min(i+1, lastBucket))) * ageUnit //nolint:gosec // G115: at most 2^30
		}
	}
	return 0
}

// KnownUntil is the age beyond which nothing is known: a retry older than the
// time of observation could only be seen by luck, and one that was older was.
func (o *Observed) KnownUntil() time.Duration {
	watched := time.Duration(o.Seconds * float64(time.Second))
	return min(max(watched, o.Oldest()), time.Duration(lowerBound(lastBucket))*ageUnit) //nolint:gosec // G115: 2^30
}

// At predicts what a TTL would do, if traffic goes on as it was observed and
// Redis is there. It is a lower bound of the share: a late retry writes the
// entry anew, and those that follow it find that one.
func (o *Observed) At(ttl time.Duration) Forecast {
	n, hits := o.Retries(), 0.
	f := Forecast{TTLSeconds: ttl.Seconds(), Sample: n, Known: n > 0 && ttl <= o.KnownUntil(), ShareHigh: 1}
	if n > 0 {
		hits = o.ages.below(float64(ttl) / float64(ageUnit))
		f.Share = hits / float64(n)
		f.ShareLow, f.ShareHigh = wilson(hits, float64(n))
	}
	perSecond := func(n float64) float64 {
		if o.Seconds <= 0 {
			return 0
		}
		return n / o.Seconds
	}
	misses := float64(n) - hits
	low, high := poisson(misses)
	f.MySQLPerSecond, f.MySQLPerSecondLow, f.MySQLPerSecondHigh = perSecond(misses), perSecond(low), perSecond(high)
	f.RedisBytes = (perSecond(float64(o.Keys)) + f.MySQLPerSecond) * ttl.Seconds() * o.BytesPerKey
	return f
}

// Knee is the smallest TTL, in steps of a bucket, whose share reaches the
// target, or false when none that is known does.
func (o *Observed) Knee(target float64) (time.Duration, bool) {
	n := o.Retries()
	if n == 0 {
		return 0, false
	}
	var below uint64
	for i := range lastBucket {
		below += o.ages[i]
		if float64(below) >= target*float64(n) {
			return time.Duration(lowerBound(i+1)) * ageUnit, true //nolint:gosec // G115: at most 2^30
		}
	}
	return 0, false
}

// z is the normal quantile of 95 % confidence, both ways.
const z = 1.959964

// poisson is the score interval of the mean of a count that was k: it is not below
// 0, and says of nothing seen that there may be a few.
func poisson(k float64) (low, high float64) {
	centre, spread := k+z*z/2, z*math.Sqrt(k+z*z/4)
	return min(k, max(0, centre-spread)), centre + spread
}

// wilson is the 95 % score interval of a share k of n (E. B. Wilson, 1927): it
// stays within 0 and 1, and is honest for small samples and shares near 1.
func wilson(k, n float64) (low, high float64) {
	p := k / n
	centre := p + z*z/(2*n)
	spread := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	scale := 1 + z*z/n
	return min(p, max(0, (centre-spread)/scale)), max(p, min(1, (centre+spread)/scale))
}
