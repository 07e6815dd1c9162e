package insight

import (
	"math/bits"
	"sync/atomic"
)

// The buckets of a histogram: values are whole units; the first 16 have a bucket
// each, and from there every power of two is split into 8, so that a bucket is
// at most 12.5 % wide. The last one takes everything from 2^30 units on.
const (
	bucketBits  = 3 // 8 buckets per power of two
	valueBits   = 30
	bucketCount = (valueBits-bucketBits)<<bucketBits + 1<<bucketBits + 1
	lastBucket  = bucketCount - 1
)

// bucketOf returns the bucket of a value.
func bucketOf(v uint64) int {
	if v < 1<<(bucketBits+1) {
		return int(v)
	}
	if v >= 1<<valueBits {
		return lastBucket
	}
	shift := bits.Len64(v) - bucketBits - 1
	return shift<<bucketBits + int(v>>shift) //nolint:gosec // G115: below bucketCount
}

// lowerBound is the smallest value of a bucket; the next bucket's is the first
// beyond it.
func lowerBound(bucket int) uint64 {
	if bucket < 1<<(bucketBits+1) {
		return uint64(max(0, bucket))
	}
	shift := bucket>>bucketBits - 1
	return uint64(bucket-shift<<bucketBits) << shift //nolint:gosec // G115: from 8 to 15
}

// histogram counts values. The zero value is ready; safe for concurrent use.
type histogram struct{ counts [bucketCount]atomic.Uint64 }

func (h *histogram) add(v uint64) { h.counts[bucketOf(v)].Add(1) }

// read adds the counts to those in into.
func (h *histogram) read(into *counts) {
	for i := range h.counts {
		into[i] += h.counts[i].Load()
	}
}

func (h *histogram) total() (n uint64) {
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}

// counts are a histogram at one moment.
type counts [bucketCount]uint64

func (c *counts) total() (n uint64) {
	for _, v := range c {
		n += v
	}
	return n
}

// since returns what was counted after an earlier moment.
func (c *counts) since(earlier *counts) (d counts) {
	for i := range c {
		d[i] = c[i] - earlier[i]
	}
	return d
}

func (c *counts) plus(other *counts) {
	for i := range c {
		c[i] += other[i]
	}
}

// quantile returns the value below which the share q of the values is, within
// the width of a bucket; 0 when there is none.
func (c *counts) quantile(q float64) float64 {
	n := c.total()
	if n == 0 {
		return 0
	}
	left := q * float64(n)
	last := 0
	for i, v := range c {
		if v == 0 {
			continue
		}
		last = i
		if f := float64(v); left <= f {
			lo := float64(lowerBound(i))
			if i == lastBucket {
				return lo
			}
			return lo + (float64(lowerBound(i+1))-lo)*left/f
		}
		left -= float64(v)
	}
	return float64(lowerBound(last + 1))
}

// below returns how many values are below v. Within the bucket that v is in,
// they are taken to be spread evenly.
func (c *counts) below(v float64) (n float64) {
	for i, count := range c {
		if count == 0 {
			continue
		}
		lo, hi := float64(lowerBound(i)), float64(lowerBound(i+1))
		switch {
		case i == lastBucket || v <= lo:
			return n
		case v < hi:
			return n + float64(count)*(v-lo)/(hi-lo)
		}
		n += float64(count)
	}
	return n
}
