package pace

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEvenArrivalsAreExact(t *testing.T) {
	t.Parallel()
	due := slices.Collect(Constant(1000, 10*time.Second).Even())
	require.Len(t, due, 10_000)
	require.Zero(t, due[0])
	require.InDelta(t, time.Millisecond, due[1], 1)
	require.InDelta(t, 9999*time.Millisecond, due[9999], 1000)
}

func TestRampSendsHalfOfTheFullRate(t *testing.T) {
	t.Parallel()
	p, err := Shape{Rate: 100, Length: 10 * time.Second, Ramp: 10 * time.Second}.Plan()
	require.NoError(t, err)
	due := slices.Collect(p.Even())
	require.InDelta(t, 500, len(due), 1)
	require.InDelta(t, float64(10*time.Second)*0.7071, float64(due[250]), float64(20*time.Millisecond))
}

func TestSpikeMultipliesTheRate(t *testing.T) {
	t.Parallel()
	k, err := ParseSpike("5x@2s+1s")
	require.NoError(t, err)
	p, err := Shape{Rate: 100, Length: 4 * time.Second, Spikes: []Spike{k}}.Plan()
	require.NoError(t, err)
	require.InDelta(t, 800, p.Total(), 0.001)
	require.InDelta(t, 500, p.Rate(2500*time.Millisecond), 0.001)
	require.InDelta(t, 100, p.Rate(3500*time.Millisecond), 0.001)
	require.Zero(t, p.Rate(5*time.Second))
}

func TestPoissonIsSeededAndHasTheRightNumber(t *testing.T) {
	t.Parallel()
	p := Constant(1000, 10*time.Second)
	a := slices.Collect(p.Poisson(rand.New(rand.NewPCG(7, 7))))
	b := slices.Collect(p.Poisson(rand.New(rand.NewPCG(7, 7))))
	require.Equal(t, a, b)
	require.InDelta(t, 10_000, len(a), 500) // five standard deviations
	require.True(t, slices.IsSorted(a))
}

func TestArrivalsFollowThePlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var p Plan
		for range rapid.IntRange(1, 4).Draw(t, "segments") {
			p = append(p, Segment{
				Length: time.Duration(rapid.Int64Range(1, int64(2*time.Second)).Draw(t, "length")),
				From:   rapid.Float64Range(0, 500).Draw(t, "from"),
				To:     rapid.Float64Range(0, 500).Draw(t, "to"),
			})
		}
		due := slices.Collect(p.Even())
		require.InDelta(t, p.Total(), len(due), 1.001)
		require.True(t, slices.IsSorted(due))
		for _, at := range due {
			require.True(t, at >= 0 && at <= p.Length())
		}
	})
}

func TestBadShapesAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "0", "-1/s", "x/s", "5/d", "NaN", "Inf/s", "60/", "60 / s", "0x1p6", "6e1/s", "/s"} {
		_, err := ParseRate(s)
		require.Error(t, err, s)
	}
	for _, s := range []string{"", "5x", "5@2s+1s", "0x@2s+1s", "5x@-2s+1s", "5x@2s", "NaNx@1s+1s", "0x1p2x@2s+1s", "5e1x@2s+1s"} {
		_, err := ParseSpike(s)
		require.Error(t, err, s)
	}
	for _, s := range []Shape{
		{Length: time.Second},
		{Rate: 1},
		{Rate: 1, Length: time.Second, Ramp: 2 * time.Second},
		{Rate: 1, Length: 5 * time.Second, Spikes: []Spike{{2, time.Second, 2 * time.Second}, {2, 2 * time.Second, time.Second}}},
		{Rate: 1, Length: 5 * time.Second, Spikes: []Spike{{2, 4 * time.Second, 2 * time.Second}}},
		{Rate: 1, Length: 5 * time.Second, Spikes: []Spike{{2, 4 * time.Second, math.MaxInt64}}},
		{Rate: 1e9, Length: time.Second},
		{Rate: 1000, Length: 5 * time.Second, Spikes: []Spike{{1e6, time.Second, time.Second}}},
	} {
		_, err := s.Plan()
		require.Error(t, err)
	}
	r, err := ParseRate("120/m")
	require.NoError(t, err)
	require.InDelta(t, 2, r, 1e-9)
}
