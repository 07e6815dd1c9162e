//go:build unix

package bench

import (
	"context"
	"errors"
	"time"
)

// latency tells how long answers take at half of what the gateway can do: each
// outcome alone in a closed loop first, which gives its ceiling, then all of
// them together in an open loop. Each gets the same share of the gateway's time,
// and half of that is used.
func (s *stage) latency(ctx context.Context) (sheets []Sheet, err error) {
	if err := allowDescriptors(mostUnderWay); err != nil {
		return nil, err
	}
	d, err := s.deploy(ctx, s.c.Gateway, crowded(), s.users, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.closers.close()) }()
	if err := s.primeKinds(ctx, d); err != nil {
		return nil, err
	}
	sheet := Sheet{
		Title: "Latency at half of the ceiling, from the due instant", Of: "outcome",
		Columns: []Column{
			{"ceiling", rate},
			{"asked for", rate},
			{"answers", count},
			{"others", count},
			{"dropped", count},
			{"p50", elapsed},
			{"p99", elapsed},
			{"p99.9", elapsed},
			{"longest", elapsed},
		},
	}
	kinds := []kind{s.created(), s.replayedFromRedis(), s.replayedInProcess(), s.reused()}
	ceilings := make([]float64, len(kinds))
	loop := &openLoop{addr: d.addr, ready: s.c.most(), periods: 1, period: time.Duration(s.c.Rounds) * s.c.Window}
	for i := range kinds {
		c, err := s.ceiling(ctx, d, &kinds[i], &sheet)
		if err != nil {
			return nil, err
		}
		ceilings[i] = c
		loop.streams = append(loop.streams, kinds[i].stream(c/2/float64(len(kinds))))
	}
	before, err := d.layers(ctx)
	if err != nil {
		return nil, err
	}
	s.say("  open loop for %v", loop.period)
	if err := loop.run(ctx, func(time.Time) {}); err != nil {
		return nil, err
	}
	after, err := d.layers(ctx)
	if err != nil {
		return nil, err
	}
	for i, k := range kinds {
		got := loop.streams[i].seen(0)
		if err := got.right(k.name, k.want); err != nil {
			return nil, err
		}
		sheet.add(k.name, once(ceilings[i]), once(loop.streams[i].rate), once(float64(got.Counts[k.want])),
			once(float64(got.others(k.want))), once(float64(got.dropped)),
			got.at(k.want, 50), got.at(k.want, 99), got.at(k.want, 99.9), got.at(k.want, 100))
	}
	sheet.note("%d connections in the closed loops; arrivals of the open one are random (Poisson), each outcome has a quarter of the time",
		s.c.most())
	if share, ok := after.share(before, layerRedis); ok {
		sheet.note("of the replays of the open loop %.1f %% came from Redis, %.1f %% of them were to",
			100*share, 100*loop.streams[1].rate/(loop.streams[1].rate+loop.streams[2].rate))
	}
	return []Sheet{sheet}, nil
}
