package insight

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBucketsFollowOneAnotherWithoutGap(t *testing.T) {
	t.Parallel()
	require.Equal(t, 0, bucketOf(0))
	for i := range lastBucket {
		lo, hi := lowerBound(i), lowerBound(i+1)
		require.Greater(t, hi, lo)
		require.Equal(t, i, bucketOf(lo), "lower bound of bucket %d", i)
		require.Equal(t, i, bucketOf(hi-1), "last value of bucket %d", i)
		if i >= 8 {
			require.LessOrEqual(t, float64(hi-lo)/float64(lo), 0.125, "width of bucket %d", i)
		}
	}
	require.Equal(t, uint64(1<<valueBits), lowerBound(lastBucket))
	require.Equal(t, lastBucket, bucketOf(1<<valueBits))
	require.Equal(t, lastBucket, bucketOf(1<<63))
}

func TestQuantilesAreWithinABucketOfTheTruth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Uint64Range(0, 1<<29), 1, 200).Draw(t, "values")
		q := rapid.Float64Range(0.01, 1).Draw(t, "q")
		var h histogram
		for _, v := range values {
			h.add(v)
		}
		var c counts
		h.read(&c)
		got := c.quantile(q)
		atMost, below := 0, 0
		for _, v := range values {
			if lo := lowerBound(bucketOf(v)); float64(lo) <= got {
				atMost++
			}
			if hi := lowerBound(bucketOf(v) + 1); float64(hi) <= got {
				below++
			}
		}
		n := float64(len(values))
		require.GreaterOrEqual(t, float64(atMost), q*n-1e-6, "too small")
		require.LessOrEqual(t, float64(below), q*n+1e-6, "too large")
	})
}

func TestAHistogramOfNothing(t *testing.T) {
	t.Parallel()
	var c counts
	require.Zero(t, c.quantile(.5))
	require.Zero(t, c.below(1e9))
	c[lastBucket] = 3
	require.InDelta(t, 1<<valueBits, c.quantile(.5), 0, "the last bucket has no end, so its beginning is said")
	require.Zero(t, c.below(1<<valueBits), "nothing tells how far beyond they are")
}
