package pace

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseRate reads "2000/s", "120/m" or a plain number per second.
func ParseRate(text string) (float64, error) {
	number, unit, _ := strings.Cut(text, "/")
	rate, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || rate <= 0 || math.IsInf(rate, 0) || math.IsNaN(rate) {
		return 0, fmt.Errorf("rate %q: want a positive number such as 2000/s", text)
	}
	switch strings.TrimSpace(unit) {
	case "", "s":
		return rate, nil
	case "m":
		return rate / 60, nil
	case "h":
		return rate / 3600, nil
	}
	return 0, fmt.Errorf("rate %q: the unit must be s, m or h", text)
}

// Spike multiplies the rate for a while.
type Spike struct {
	Factor float64
	Start  time.Duration
	Length time.Duration
}

// ParseSpike reads "5x@20s+10s": five times the rate, from second 20, for ten seconds.
func ParseSpike(text string) (Spike, error) {
	factor, rest, ok1 := strings.Cut(text, "x@")
	start, length, ok2 := strings.Cut(rest, "+")
	f, err1 := strconv.ParseFloat(factor, 64)
	s, err2 := time.ParseDuration(start)
	l, err3 := time.ParseDuration(length)
	if !ok1 || !ok2 || err1 != nil || err2 != nil || err3 != nil || !(f > 0) || math.IsInf(f, 0) || s < 0 || l <= 0 {
		return Spike{}, fmt.Errorf("spike %q: want FACTORx@START+LENGTH, such as 5x@20s+10s", text)
	}
	return Spike{f, s, l}, nil
}

// Shape is what the flags of a run say about the rate.
type Shape struct {
	Rate   float64
	Length time.Duration
	Ramp   time.Duration // from nothing to Rate, at the beginning
	Spikes []Spike
}

// Plan builds the rate over time: the ramp first, then the rate with its spikes.
func (s Shape) Plan() (Plan, error) {
	switch {
	case !(s.Rate > 0):
		return nil, fmt.Errorf("the rate must be positive")
	case s.Length <= 0:
		return nil, fmt.Errorf("the duration must be positive")
	case s.Ramp < 0 || s.Ramp > s.Length:
		return nil, fmt.Errorf("the ramp must fit into the duration")
	}
	var p Plan
	at := s.Ramp
	if s.Ramp > 0 {
		p = append(p, Segment{s.Ramp, 0, s.Rate})
	}
	spikes := slices.Clone(s.Spikes)
	slices.SortFunc(spikes, func(a, b Spike) int { return int(a.Start - b.Start) })
	for _, k := range spikes {
		if k.Start < at || k.Start+k.Length > s.Length {
			return nil, fmt.Errorf("spike at %s: it must lie after the ramp, within the duration, and not overlap", k.Start)
		}
		if k.Start > at {
			p = append(p, Segment{k.Start - at, s.Rate, s.Rate})
		}
		p = append(p, Segment{k.Length, s.Rate * k.Factor, s.Rate * k.Factor})
		at = k.Start + k.Length
	}
	if at < s.Length {
		p = append(p, Segment{s.Length - at, s.Rate, s.Rate})
	}
	return p, nil
}
