//go:build linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// event is one fault of a plan: which, on which gateway, and the numbers that it
// draws while it lasts.
type event struct {
	fault  *fault
	site   int
	random uint64
}

// step is what happens at one time: one fault, or two in different places.
type step struct {
	events []event
	hold   time.Duration // how long the faults last
	gap    time.Duration // until the next step: the deployment recovers, or not quite
}

func (s step) String() string {
	names := make([]string, len(s.events))
	for i, e := range s.events {
		names[i] = fmt.Sprintf("%s at gateway %d", e.fault.name, e.site)
	}
	return strings.Join(names, " with ") + " for " + s.hold.String()
}

// draw makes the plan of a run: the same one for the same seed.
func draw(seed uint64, length time.Duration, faults []fault) []step {
	r := rand.New(rand.NewPCG(seed, 0))
	var steps []step
	// Every fault once, in an order of the seed, before any comes a second time.
	var deck []int
	next := func() *fault {
		if len(deck) == 0 {
			deck = r.Perm(len(faults))
		}
		return &faults[deck[0]]
	}
	take := func() event {
		f := next()
		deck = deck[1:]
		return event{f, r.IntN(gatewayCount), r.Uint64()}
	}
	for total := time.Duration(0); total < length; {
		s := step{hold: between(r, 400*time.Millisecond, 3*time.Second), gap: between(r, 300*time.Millisecond, 2*time.Second)}
		s.events = append(s.events, take())
		if r.IntN(3) == 0 && next().place != s.events[0].fault.place {
			s.events = append(s.events, take())
		}
		total += s.hold + s.gap
		steps = append(steps, s)
	}
	return steps
}

// between draws a time, in whole milliseconds.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return (low + time.Duration(r.Int64N(int64(high-low)))).Truncate(time.Millisecond)
}

func TestASeedRepeatsItsPlan(t *testing.T) {
	t.Parallel()
	faults := allFaults()
	describe := func(seed uint64) (text string) {
		for _, s := range draw(seed, time.Minute, faults) {
			text += s.String() + "\n"
		}
		return text
	}
	first, again, other := describe(1), describe(1), describe(2)
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
}

func TestEveryFaultComesBeforeAnyComesTwice(t *testing.T) {
	t.Parallel()
	faults := allFaults()
	names := map[string]bool{}
	for _, f := range faults {
		names[f.name] = true
	}
	require.Len(t, names, len(faults), "names are unique")
	seen := map[string]int{}
	for _, s := range draw(7, time.Hour, faults) {
		for _, e := range s.events {
			for name := range names {
				require.GreaterOrEqual(t, seen[name], seen[e.fault.name], "%s comes again before %s", e.fault.name, name)
			}
			seen[e.fault.name]++
		}
	}
}
