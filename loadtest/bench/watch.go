//go:build unix

package bench

import (
	"context"
	"time"
)

// slice is how long a watcher counts before it looks again.
const slice = 250 * time.Millisecond

// pressure is what came to MySQL in one period.
type pressure struct {
	slices  int
	length  time.Duration
	commits float64 // in all of it
	peak    float64 // commits per second in the busiest slice
	running float64 // statements that MySQL worked on at once, the most that was seen
	waiting float64 // orders in the queues of the gateway, the most that was seen
	refused float64 // because a queue was full
}

func (p *pressure) perSecond() Figure {
	if p.length <= 0 {
		return untold()
	}
	return once(p.commits / p.length.Seconds())
}

// watch looks at MySQL and at the gateway until the periods are over, and says
// what came in each. Both keep answering while Redis is away.
func (s *stage) watch(ctx context.Context, admin string, start time.Time, periods int, period time.Duration) ([]pressure, error) {
	all := make([]pressure, periods)
	sql, err := s.sqlCounters(ctx)
	if err != nil {
		return nil, err
	}
	g, err := readGauges(ctx, admin)
	if err != nil {
		return nil, err
	}
	at := time.Now()
	for {
		sleepUntil(ctx, at.Add(slice))
		nowSQL, err := s.sqlCounters(ctx)
		if err != nil {
			return nil, err
		}
		nowG, err := readGauges(ctx, admin)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		in := int(at.Add(now.Sub(at)/2).Sub(start) / period)
		if in >= periods {
			return all, nil
		}
		all[max(in, 0)].count(now.Sub(at), nowSQL["com_commit"]-sql["com_commit"], nowSQL["threads_running"]-1, // without who asks
			nowG["oncegate_ledger_waiting"], nowG["oncegate_ledger_overloaded_total"]-g["oncegate_ledger_overloaded_total"])
		at, sql, g = now, nowSQL, nowG
	}
}

func (p *pressure) count(length time.Duration, commits, running, waiting, refused float64) {
	p.slices++
	p.length += length
	p.commits += commits
	p.peak = max(p.peak, commits/length.Seconds())
	p.running = max(p.running, running)
	p.waiting = max(p.waiting, waiting)
	p.refused += refused
}
