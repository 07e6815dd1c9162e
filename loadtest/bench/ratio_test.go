//go:build unix

package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedianIsTheMiddle(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2, median([]float64{9, 1, 2}), 0)
	require.InDelta(t, 1.5, median([]float64{2, 1}), 0)
	require.InDelta(t, 7, median([]float64{7}), 0)
}

func TestRatiosPairTheTurnsOfARound(t *testing.T) {
	t.Parallel()
	// The machine was half as fast in the second round: the ratio is the same.
	require.Equal(t, []float64{4, 4}, pairs([]float64{400, 200}, []float64{100, 50}))
}

func TestIntervalNarrowsWithTheNumberOfRounds(t *testing.T) {
	t.Parallel()
	upTo := func(n int) (values []float64) {
		for i := range n {
			values = append(values, float64(n-i)) // not sorted
		}
		return values
	}
	for n, want := range map[int][2]float64{
		1:  {1, 1},
		3:  {1, 3},
		5:  {1, 5}, // 94 %
		7:  {1, 7}, // the next one would be 88 %
		8:  {2, 7}, // 93 %
		20: {6, 15},
	} {
		low, high := interval(upTo(n))
		require.Equal(t, want, [2]float64{low, high}, n)
	}
}

func TestTargetsAreJudgedInTheirOwnDirection(t *testing.T) {
	t.Parallel()
	speed := &Target{AtLeast: 4.5, Aim: 6}
	require.Equal(t, Missed, speed.judge(4.4, 4.49))
	require.Equal(t, Reached, speed.judge(4.5, 4.6))
	require.Equal(t, Aimed, speed.judge(6, 6.1))
	latency := &Target{AtLeast: 1.3, Aim: 1.1, Lower: true}
	require.Equal(t, Missed, latency.judge(1.31, 1.4))
	require.Equal(t, Reached, latency.judge(1.2, 1.3))
	require.Equal(t, Aimed, latency.judge(0.7, 0.8))
	require.Equal(t, Reached, (&Target{AtLeast: 0.9}).judge(5, 6), "no aim, so none is reached")
	require.Equal(t, NotAsked, (*Target)(nil).judge(0.1, 0.2))
}

func TestQuantilesAreTimesThatWereMeasured(t *testing.T) {
	t.Parallel()
	times := make([]time.Duration, 100)
	for i := range times {
		times[i] = time.Duration(i + 1)
	}
	require.EqualValues(t, 50, quantile(times, 0.5))
	require.EqualValues(t, 99, quantile(times, 0.99))
	require.EqualValues(t, 7, quantile([]time.Duration{7}, 0.99))
}
