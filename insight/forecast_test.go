package insight

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// watched are retries of the given ages, seen in an hour with a key a second.
func watched(ages ...time.Duration) Observed {
	o := Observed{Seconds: 3600, Keys: 3600, BytesPerKey: 400}
	for _, age := range ages {
		o.ages[bucketOf(units(age, ageUnit))]++
	}
	return o
}

func TestAForecastCountsWhatIsYoungerThanTheTTL(t *testing.T) {
	t.Parallel()
	ages := make([]time.Duration, 0, 100)
	for range 90 {
		ages = append(ages, time.Second)
	}
	for range 10 {
		ages = append(ages, 20*time.Minute)
	}
	o := watched(ages...)
	f := o.At(time.Minute)
	require.True(t, f.Known)
	require.InDelta(t, 0.9, f.Share, 1e-9)
	// Wilson's interval of 90 of 100, from his formula by hand.
	require.InDelta(t, 0.8256, f.ShareLow, 1e-3)
	require.InDelta(t, 0.9448, f.ShareHigh, 1e-3)
	require.InDelta(t, 10./3600, f.MySQLPerSecond, 1e-9)
	require.InDelta(t, (1+10./3600)*60*400, f.RedisBytes, 1e-6)
	require.InDelta(t, 1, o.At(time.Hour).Share, 1e-9)
	require.True(t, o.At(time.Hour).Known)
	require.False(t, o.At(2*time.Hour).Known, "an hour of watching says nothing of two")
}

// How many retries came is chance, too: of four that were late there could as well
// have been ten, and of none three.
func TestFewRetriesGiveARateWideBounds(t *testing.T) {
	t.Parallel()
	late := watched(time.Minute, time.Minute, time.Minute, time.Minute)
	f := late.At(time.Second)
	require.InDelta(t, 4./3600, f.MySQLPerSecond, 1e-12)
	// The score interval of 4, by hand: 4 + 1.92 ± 1.96 √(4 + 0.96).
	require.InDelta(t, 1.556/3600, f.MySQLPerSecondLow, 1e-6)
	require.InDelta(t, 10.286/3600, f.MySQLPerSecondHigh, 1e-6)
	f = late.At(time.Hour)
	require.InDelta(t, 0, f.MySQLPerSecondLow, 1e-12)
	require.InDelta(t, 3.841/3600, f.MySQLPerSecondHigh, 1e-6)
}

func TestKnowledgeReachesAsFarAsTheOldestRetry(t *testing.T) {
	t.Parallel()
	o := watched(time.Second, 30*time.Hour)
	require.GreaterOrEqual(t, o.KnownUntil(), 30*time.Hour, "the database remembers keys from before this process")
	require.Less(t, o.KnownUntil(), 34*time.Hour)
	none := watched()
	require.Equal(t, time.Hour, none.KnownUntil())
	f := none.At(time.Minute)
	require.False(t, f.Known, "there was no retry to tell from")
	require.InDelta(t, 0, f.ShareLow, 0)
	require.InDelta(t, 1, f.ShareHigh, 0)
}

func TestTheKneeIsTheFirstTTLThatReachesTheTarget(t *testing.T) {
	t.Parallel()
	o := watched()
	_, ok := o.Knee(.99)
	require.False(t, ok)
	rapid.Check(t, func(t *rapid.T) {
		o := watched(rapid.SliceOfN(anyAge(), 1, 300).Draw(t, "ages")...)
		target := rapid.Float64Range(.01, 1).Draw(t, "target")
		knee, ok := o.Knee(target)
		if !ok {
			require.Less(t, float64(o.Retries()-o.ages[lastBucket]), target*float64(o.Retries()))
			return
		}
		require.GreaterOrEqual(t, o.At(knee).Share, target-1e-9)
		require.LessOrEqual(t, knee, o.KnownUntil())
		b := bucketOf(units(knee, ageUnit))
		if b > 0 {
			require.Less(t, o.At(time.Duration(lowerBound(b-1))*ageUnit).Share, target+1e-9)
		}
	})
}

func anyAge() *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(1, 31).Draw(t, "size")).Draw(t, "ms")) * time.Millisecond
	})
}

func TestForecastsAreSane(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := watched(rapid.SliceOfN(anyAge(), 0, 300).Draw(t, "ages")...)
		a, b := rapid.Int64Range(1, 1<<30).Draw(t, "a"), rapid.Int64Range(1, 1<<30).Draw(t, "b")
		short, long := o.At(time.Duration(min(a, b))*ageUnit), o.At(time.Duration(max(a, b))*ageUnit)
		for _, f := range []Forecast{short, long} {
			require.GreaterOrEqual(t, f.ShareLow, 0.)
			require.LessOrEqual(t, f.ShareLow, f.Share)
			require.LessOrEqual(t, f.Share, f.ShareHigh)
			require.LessOrEqual(t, f.ShareHigh, 1.)
			require.GreaterOrEqual(t, f.MySQLPerSecondLow, -1e-12)
			require.LessOrEqual(t, f.MySQLPerSecondLow, f.MySQLPerSecond+1e-12)
			require.LessOrEqual(t, f.MySQLPerSecond, f.MySQLPerSecondHigh+1e-12)
			require.GreaterOrEqual(t, f.RedisBytes, f.TTLSeconds*400-1e-6, "each new key is kept for the TTL")
		}
		require.LessOrEqual(t, short.Share, long.Share+1e-12, "a longer TTL never answers fewer")
		require.GreaterOrEqual(t, short.MySQLPerSecond, long.MySQLPerSecond-1e-12)
	})
}

// Retries whose ages follow a law, and as many more that follow the same one: what
// was predicted from the first holds for the second.
func TestAPredictionComesTrue(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(7, 11))
	age := func() time.Duration {
		if source.IntN(10) == 0 {
			return time.Duration(source.Int64N(int64(20 * time.Hour)))
		}
		return time.Duration(source.ExpFloat64() * float64(2*time.Second))
	}
	o := watched()
	for range 20_000 {
		o.ages[bucketOf(units(age(), ageUnit))]++
	}
	for _, ttl := range []time.Duration{time.Second, time.Minute, time.Hour, 12 * time.Hour} {
		f := o.At(ttl)
		const trials = 100_000
		hits := 0
		for range trials {
			if age() < ttl {
				hits++
			}
		}
		// Twice the interval's width: its own 95 %, and a bucket's width.
		slack := f.ShareHigh - f.ShareLow
		require.InDelta(t, float64(hits)/trials, f.Share, 2*slack+.003, "at %v", ttl)
	}
}
