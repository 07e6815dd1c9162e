package result

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParseThreshold: a bound that is read is a number, and is not met by a run
// in which nothing happened, unless it is about counts.
func FuzzParseThreshold(f *testing.F) {
	for _, s := range []string{
		"p99(created)<50ms", "share(unavailable)<1%", "rate(all)>=1000/s", "findings==0", "lag<1s", "p99.9(created.service)<=2s", "p0(all)<1s", "p101(all)<1s",
		"count(all)=1", "mean(all)<-1s", "dropped<<1", "p99(created<50ms", "share(all)<100", "rate(all)>1/m", "<", "p99(all)>", "p99(all.service.service)<1s",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseThreshold(s)
		if err != nil {
			require.Equal(t, Threshold{}, h)
			return
		}
		require.False(t, math.IsNaN(h.bound) || math.IsInf(h.bound, 0))
		require.Contains(t, []string{"<", "<=", ">", ">=", "=="}, h.op)
		c := h.Check(&Result{})
		require.Equal(t, s, c.Threshold)
		require.NotEmpty(t, c.Actual)
		if c.Actual == "no such request" {
			require.False(t, c.Passed)
		}
	})
}
