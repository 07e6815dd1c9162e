package pace

import (
	"iter"
	"math"
	"math/rand/v2"
	"time"
)

// Segment is a stretch of time in which the rate goes in a straight line from
// From to To, in starts per second.
type Segment struct {
	Length   time.Duration
	From, To float64
}

// Plan is a rate over time.
type Plan []Segment

// Constant is a plan of one rate.
func Constant(rate float64, length time.Duration) Plan {
	return Plan{{Length: length, From: rate, To: rate}}
}

// Length is how long the plan lasts.
func (p Plan) Length() time.Duration {
	var sum time.Duration
	for _, s := range p {
		sum += s.Length
	}
	return sum
}

// Total is the number of starts that the plan asks for: the area under the rate.
func (p Plan) Total() float64 {
	var sum float64
	for _, s := range p {
		sum += s.area()
	}
	return sum
}

// Rate is the planned rate at an instant.
func (p Plan) Rate(at time.Duration) float64 {
	for _, s := range p {
		if at < s.Length {
			return s.From + (s.To-s.From)*(float64(at)/float64(s.Length))
		}
		at -= s.Length
	}
	return 0
}

// At is the instant at which the area under the rate reaches x. It reports false
// when the plan ends before.
func (p Plan) At(x float64) (time.Duration, bool) {
	var before time.Duration
	for _, s := range p {
		area := s.area()
		if x < area {
			return before + s.solve(x), true
		}
		x -= area
		before += s.Length
	}
	return 0, false
}

func (s Segment) area() float64 { return (s.From + s.To) / 2 * s.Length.Seconds() }

// solve inverts the area within one segment. The form with the root in the
// denominator stays exact where the slope is small.
func (s Segment) solve(x float64) time.Duration {
	slope := (s.To - s.From) / s.Length.Seconds()
	root := math.Sqrt(max(0, s.From*s.From+2*slope*x))
	if s.From+root <= 0 {
		return 0
	}
	at := time.Duration(2 * x / (s.From + root) * float64(time.Second))
	return min(at, s.Length)
}

// Even yields evenly spaced arrivals: the n-th is due when n starts were asked for.
func (p Plan) Even() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for n := 0; ; n++ {
			at, ok := p.At(float64(n))
			if !ok || !yield(at) {
				return
			}
		}
	}
}

// Poisson yields the arrivals of customers who do not know of each other: the
// gaps are exponential, bunches and lulls included.
func (p Plan) Poisson(r *rand.Rand) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for x := r.ExpFloat64(); ; x += r.ExpFloat64() {
			at, ok := p.At(x)
			if !ok || !yield(at) {
				return
			}
		}
	}
}
