package pace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncegate/oncegate/loadtest/decimal"
)

// maxRate is what no machine reaches: a typing error must not plan for ever.
const maxRate = 1_000_000

// ParseRate reads "2000/s", "120/m" or a plain number per second.
func ParseRate(text string) (float64, error) {
	number, unit, named := strings.Cut(text, "/")
	rate, err := decimal.Parse(number)
	if err != nil || rate <= 0 {
		return 0, fmt.Errorf("rate %q: want a positive number such as 2000/s", text)
	}
	switch {
	case !named || unit == "s":
		return rate, nil
	case unit == "m":
		return rate / 60, nil
	case unit == "h":
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
	f, err1 := decimal.Parse(factor)
	s, err2 := time.ParseDuration(start)
	l, err3 := time.ParseDuration(length)
	if !ok1 || !ok2 || err1 != nil || err2 != nil || err3 != nil || f <= 0 || s < 0 || l <= 0 {
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
	case !(s.Rate > 0 && s.Rate <= maxRate):
		return nil, fmt.Errorf("the rate must be positive, and at most %d/s", maxRate)
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
	slices.SortFunc(spikes, func(a, b Spike) int { return cmp.Compare(a.Start, b.Start) })
	for _, k := range spikes {
		if k.Start < at || k.Start > s.Length || k.Length > s.Length-k.Start {
			return nil, fmt.Errorf("spike at %s: it must lie after the ramp, within the duration, and not overlap", k.Start)
		}
		if s.Rate*k.Factor > maxRate {
			return nil, fmt.Errorf("spike at %s: it must not be above %d/s", k.Start, maxRate)
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
