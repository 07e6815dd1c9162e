//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/oncegate/oncegate/loadtest/measure"
)

// The periods of a recovery. Redis goes at the beginning of the second and is
// back, empty, at that of the fourth.
const (
	goes    = 1
	returns = 3
)

func recoveryPeriods() []string {
	return []string{"Redis there", "gone, at first", "gone", "back and cold, at first", "back"}
}

// recoveries tell what becomes of orders and of MySQL while Redis goes and comes
// back cold: at half of the ceiling, and at the ceiling itself, which MySQL
// cannot give alone.
func (s *stage) recoveries(ctx context.Context) (sheets []Sheet, err error) {
	if s.c.Outage == nil {
		return nil, errors.New("this Redis cannot be ended and brought back")
	}
	if err := allowDescriptors(mostUnderWay); err != nil {
		return nil, err
	}
	d, err := s.deploy(ctx, s.c.Gateway, withoutProcessTier(), s.users, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.closers.close()) }()
	if err := s.primeKinds(ctx, d); err != nil {
		return nil, err
	}
	kinds := []kind{s.created(), s.replayedFromRedis()}
	ceilings := make([]float64, len(kinds))
	sheet := recoverySheet()
	for i := range kinds {
		c, err := s.ceiling(ctx, d, &kinds[i], &sheet)
		if err != nil {
			return nil, err
		}
		ceilings[i] = c
	}
	for _, share := range []float64{0.5, 1} {
		loop := &openLoop{addr: d.addr, ready: s.c.most(), periods: len(recoveryPeriods()), period: s.c.Window}
		for i := range kinds {
			loop.streams = append(loop.streams, kinds[i].stream(share*ceilings[i]/float64(len(kinds))))
		}
		if err := s.recovery(ctx, d, loop, &sheet, fmt.Sprintf("%.0f %%", 100*share)); err != nil {
			return nil, err
		}
		sheet.note("%.0f %% of the ceiling: asked for %s created and %s replayed, each with half of the gateway's time; a period is %v",
			100*share, rate.format(loop.streams[0].rate), rate.format(loop.streams[1].rate), s.c.Window)
	}
	g, err := readGauges(ctx, d.admin)
	if err != nil {
		return nil, err
	}
	sheet.note("the gateway's queues hold %s orders; its breaker opened %s times; replays come from Redis here, not from the process; others are all answers that are neither named nor 503",
		grouped(int64(g["oncegate_ledger_queue_capacity"])), strconv.Itoa(int(g[`oncegate_breaker_transitions_total{to="open"}`])))
	return []Sheet{sheet}, nil
}

func recoverySheet() Sheet {
	return Sheet{
		Title: "Redis goes and comes back cold, under load", Of: "load, period",
		Columns: []Column{
			{"created", rate},
			{"p99", elapsed},
			{"replayed", rate},
			{"p99", elapsed},
			{"503", count},
			{"without Retry-After", count},
			{"others", count},
			{"dropped", count},
			{"transactions", rate},
			{"in the busiest 250 ms", rate},
			{"statements at once", count},
			{"queued at most", count},
			{"refused by the queue", count},
		},
	}
}

// recovery drives one load through all periods.
func (s *stage) recovery(ctx context.Context, d *deployment, loop *openLoop, sheet *Sheet, name string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var took []pressure
	beside := make(chan error, 2)
	began := false
	s.say("  open loop, %s of the ceiling", name)
	err := loop.run(ctx, func(start time.Time) {
		began = true
		go func() { beside <- failing(cancel, s.outage(ctx, start, loop.period)) }()
		go func() {
			var err error
			took, err = s.watch(ctx, d.admin, start, loop.periods, loop.period)
			beside <- failing(cancel, err)
		}()
	})
	if began {
		err = errors.Join(err, <-beside, <-beside)
	}
	if err != nil {
		return err
	}
	for i, period := range recoveryPeriods() {
		sheet.add(name+", "+period, loop.figures(i, &took[i])...)
	}
	return nil
}

// failing ends what goes on beside an error.
func failing(cancel context.CancelCauseFunc, err error) error {
	if err != nil {
		cancel(err)
	}
	return err
}

// outage ends Redis and brings it back, each at its time.
func (s *stage) outage(ctx context.Context, start time.Time, period time.Duration) error {
	sleepUntil(ctx, start.Add(goes*period))
	if err := ctx.Err(); err != nil {
		return err
	}
	end, err := s.c.Outage(ctx)
	if err != nil {
		return err
	}
	sleepUntil(ctx, start.Add(returns*period))
	return end(context.WithoutCancel(ctx)) // the next path needs it
}

// figures are in the order of the columns.
func (o *openLoop) figures(period int, p *pressure) []Figure {
	created, again := o.streams[0].seen(period), o.streams[1].seen(period)
	perSecond := func(n int64) Figure { return once(float64(n) / o.period.Seconds()) }
	both := func(of func(*seen) int64) Figure { return once(float64(of(&created) + of(&again))) }
	return []Figure{
		perSecond(created.Counts[measure.Created]), created.at(measure.Created, 99),
		perSecond(again.Counts[measure.Replayed]), again.at(measure.Replayed, 99),
		both(func(s *seen) int64 { return s.Counts[measure.Unavailable] }),
		both(func(s *seen) int64 { return s.silent }),
		once(float64(created.others(measure.Created, measure.Unavailable) + again.others(measure.Replayed, measure.Unavailable))),
		both(func(s *seen) int64 { return s.dropped }),
		p.perSecond(), once(p.peak), once(p.running), once(p.waiting), once(p.refused),
	}
}
