//go:build unix

package bench

import (
	"math"
	"slices"
)

// Target is what a ratio is asked to reach.
type Target struct {
	AtLeast float64 `json:"at_least"`
	Aim     float64 `json:"aim,omitempty"`
	// Lower: the ratio is one of times, and must stay below.
	Lower bool `json:"lower_is_better,omitempty"`
}

// Met says how far a ratio came.
type Met string

// The degrees.
const (
	NotAsked Met = "–" // the design asks nothing at this number of connections
	Missed   Met = "no"
	Reached  Met = "yes"
	Aimed    Met = "aim"
	Noisy    Met = "too noisy" // to tell
)

// judge compares the interval of a ratio with the target; nil asks nothing. A mark is
// reached when the worst end of the noise reaches it, and missed when the best end
// does not, as in the comparison of two builds.
func (t *Target) judge(low, high float64) Met {
	if t == nil {
		return NotAsked
	}
	worst, best := low, high
	reaches := func(ratio, want float64) bool { return ratio >= want }
	if t.Lower {
		worst, best = high, low
		reaches = func(ratio, want float64) bool { return ratio <= want }
	}
	switch {
	case t.Aim != 0 && reaches(worst, t.Aim):
		return Aimed
	case reaches(worst, t.AtLeast):
		return Reached
	case reaches(best, t.AtLeast):
		return Noisy
	}
	return Missed
}

// median is the middle of the values, or between the two middle ones.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

// pairs divides what each round measured of the two sides. Both turns of a round
// are neighbours in time, so what slows the machine for a while slows both.
func pairs(subject, baseline []float64) []float64 {
	ratios := make([]float64, len(subject))
	for i := range ratios {
		ratios[i] = subject[i] / baseline[i]
	}
	return ratios
}

// interval is where the true median is with a confidence of 90 % or, with fewer
// than five values, as far as they reach. It rests on order alone, not on how
// values are spread: the median lies outside [x(k), x(n+1-k)] when fewer than k
// of n coins fall one way.
func interval(values []float64) (low, high float64) {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	const doubt = 0.1
	k := 1
	for tail := coins(n, 0); k < (n+1)/2; k++ {
		tail += coins(n, k)
		if 2*tail > doubt {
			break
		}
	}
	return s[k-1], s[n-k]
}

// coins is the probability that exactly k of n coins show heads.
func coins(n, k int) float64 {
	ln := func(m int) float64 { g, _ := math.Lgamma(float64(m + 1)); return g }
	return math.Exp(ln(n) - ln(k) - ln(n-k) - float64(n)*math.Ln2)
}
