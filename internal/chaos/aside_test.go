//go:build linux

package chaos

import (
	"testing"
	"time"
)

const (
	shortest = time.Minute     // of the nemesis, below which there is nothing but it
	long     = 2 * time.Minute // from where on everything runs
)

// aside tells the seed and the engines of a run beside the nemesis. They are not
// among all other tests; in the cut that every change has to pass is one engine,
// and for long both.
func aside(t *testing.T, inTheCut string) (seed uint64, engines []string) {
	t.Helper()
	if *runFor < shortest {
		t.Skip("make chaos and make chaos-short run it")
	}
	if seed = *runSeed; seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	switch {
	case *onEngine != "":
		return seed, []string{*onEngine}
	case *runFor < long:
		return seed, []string{inTheCut}
	default:
		return seed, []string{"MySQL", "MariaDB"}
	}
}

// asideFor is how long its faults last on one engine.
func asideFor() time.Duration { return *runFor / 16 }
