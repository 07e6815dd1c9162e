package pace

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzShape: what flags say about the rate is refused, or a plan that is as long
// as was asked for, and that never has a negative or infinite rate.
func FuzzShape(f *testing.F) {
	f.Add("2000/s", "5x@20s+10s", int64(time.Minute), int64(0))
	f.Add("120/m", "0.5x@0s+1s", int64(time.Hour), int64(time.Second))
	f.Add("1e3", "x@+", int64(1), int64(-1))
	f.Add("999999999999999/h", "999999999999999x@1ns+1ns", int64(math.MaxInt64), int64(1))
	f.Add("1/", "1x@2562047h+2562047h", int64(time.Minute), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, rate, spike string, length, ramp int64) {
		r, err := ParseRate(rate)
		if err != nil {
			require.Zero(t, r)
			return
		}
		require.True(t, r > 0 && !math.IsInf(r, 0), r)
		s := Shape{Rate: r, Length: time.Duration(length), Ramp: time.Duration(ramp)}
		if k, err := ParseSpike(spike); err == nil {
			require.True(t, k.Factor > 0 && k.Start >= 0 && k.Length > 0)
			s.Spikes = append(s.Spikes, k)
		}
		p, err := s.Plan()
		if err != nil {
			return
		}
		sum := time.Duration(0)
		for _, segment := range p {
			require.Positive(t, segment.Length)
			require.True(t, segment.From >= 0 && segment.To >= 0 && !math.IsInf(segment.From+segment.To, 0))
			sum += segment.Length
		}
		require.Equal(t, s.Length, sum)
	})
}
