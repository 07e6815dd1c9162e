package live

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oncegate/oncegate/loadtest"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/result"
)

// Plain writes about one line a second, and one for each phase.
type Plain struct {
	w     io.Writer
	phase loadtest.Phase
	last  loadtest.Snapshot
}

// NewPlain returns a view that writes lines.
func NewPlain(w io.Writer) *Plain { return &Plain{w: w} }

// Show takes a snapshot. Not safe for concurrent use.
func (p *Plain) Show(s loadtest.Snapshot) {
	since := s.Progress.Elapsed - p.last.Progress.Elapsed
	if s.Phase == p.phase && since < time.Second {
		return
	}
	if s.Phase != p.phase && s.Phase != loadtest.Sending {
		_, _ = fmt.Fprintf(p.w, "%6s  %s\n", clock(s.Progress.Elapsed), s.Phase) // a lost line is no reason to stop
	}
	p.phase = s.Phase
	if s.Phase != loadtest.Sending && s.Phase != loadtest.Draining {
		return
	}
	if since < time.Second/2 {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%6s  %7.0f/s", clock(s.Progress.Elapsed), rate(s.Counts.Total()-p.last.Counts.Total(), since))
	for _, o := range measure.Outcomes() {
		if n := s.Counts[o] - p.last.Counts[o]; n > 0 {
			fmt.Fprintf(&b, "  %s %d", o, n)
		}
	}
	fmt.Fprintf(&b, "  p50 %s  p99 %s  in flight %d", shown(s.Window, s.Window.P50), shown(s.Window, s.Window.P99), s.Progress.InFlight)
	if d := s.Progress.DroppedStarts + s.Progress.DroppedFollowUps; d > 0 {
		fmt.Fprintf(&b, "  DROPPED %d", d)
	}
	b.WriteByte('\n')
	_, _ = io.WriteString(p.w, b.String()) // a lost line is no reason to stop
	p.last = s
}

// shown is a time of a window; one without answers has none.
func shown(w measure.Window, d time.Duration) string {
	if w.N == 0 {
		return "–"
	}
	return result.Duration(d)
}

func rate(n int64, d time.Duration) float64 { return float64(n) / max(d.Seconds(), 1e-9) }

func clock(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
