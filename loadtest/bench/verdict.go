//go:build unix

package bench

import (
	"fmt"
	"strings"
)

// slowest is the ratio to another build below which this one has lost too much.
const slowest = 0.9

// Verdict is what a comparison of two builds comes to.
type Verdict uint8

// The verdicts, the worse the higher.
const (
	Fine    Verdict = iota // no path is slower than is allowed
	Unclear                // the noise is too large to tell
	Slower
)

// Verdict says whether this build has become too slow, and why. A path is too
// slow when even the best end of its noise is, and fine when the worst end is.
func (r *Report) Verdict() (Verdict, string) {
	worst := Fine
	var why []string
	for i := range r.Rows {
		row := &r.Rows[i]
		v := row.verdict()
		if v != Fine {
			text := "the noise is too large to tell"
			if v == Slower {
				text = "slower"
			}
			why = append(why, fmt.Sprintf("%s, %d connections: %s × (%s–%s): %s",
				row.Path, row.Connections, two(row.Ratio), two(row.Low), two(row.High), text))
		}
		worst = max(worst, v)
	}
	if worst == Fine {
		return Fine, fmt.Sprintf("no path is below %s × of the other build", two(slowest))
	}
	return worst, strings.Join(why, "\n")
}

func (r *Row) verdict() Verdict {
	switch {
	case r.High < slowest:
		return Slower
	case r.Low < slowest:
		return Unclear
	default:
		return Fine
	}
}
