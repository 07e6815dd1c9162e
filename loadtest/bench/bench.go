//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Run measures every path and says what it found. It stops all that it started,
// also when ctx ends first.
func Run(ctx context.Context, c Config) (report *Report, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	s, err := newStage(&c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	report = &Report{
		Schema: schema, Started: time.Now().UTC(), Version: c.Version,
		Rounds: c.Rounds, Window: c.Window, Connections: c.Connections, Records: c.Records,
	}
	if report.Environment, err = s.lookAround(ctx); err != nil {
		return nil, err
	}
	for _, p := range c.chosen() {
		rows, err := s.measure(ctx, &p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.id, err)
		}
		report.Rows = append(report.Rows, rows...)
	}
	if report.Sheets, err = s.figures(ctx); err != nil {
		return nil, err
	}
	report.Environment.LoadAfter = loadAverage()
	return report, nil
}

// measure opens both sides of a path and lets them take turns.
func (s *stage) measure(ctx context.Context, p *path) (rows []Row, err error) {
	var open closers
	defer func() { err = errors.Join(err, open.close()) }()
	open.add(func() error { return s.flush(ctx) })
	s.say("%s: %s against %s", p.id, p.subject.name, p.baseline.name)
	subject, err := p.subject.open(ctx, s)
	if err != nil {
		return nil, err
	}
	open.add(subject.stop)
	baseline, err := p.baseline.open(ctx, s)
	if err != nil {
		return nil, err
	}
	open.add(baseline.stop)
	for _, connections := range p.connections {
		row, err := s.takeTurns(ctx, p, subject, baseline, connections)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	if s.c.Profiles != "" && subject.admin != "" {
		err = s.profile(ctx, p, subject)
	}
	return rows, err
}

func (s *stage) takeTurns(ctx context.Context, p *path, subject, baseline *target, connections int) (Row, error) {
	row := Row{
		ID: p.id, Path: p.name, Connections: connections, Unit: p.unit, Target: p.targetAt(connections),
		Subject: Side{Name: p.subject.name}, Baseline: Side{Name: p.baseline.name},
	}
	note := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(row.Notes, text) {
			row.Notes = append(row.Notes, text)
		}
	}
	if subject.note != "" {
		note("%s", subject.note)
	}
	turns := []struct {
		target *target
		side   *Side
	}{{subject, &row.Subject}, {baseline, &row.Baseline}}
	for round := range s.c.Rounds {
		before, err := subject.replays(ctx)
		if err != nil {
			return row, err
		}
		for _, turn := range turns {
			sample, err := s.turn(ctx, turn.target, connections)
			if err != nil {
				return row, fmt.Errorf("%s: %w", turn.side.Name, err)
			}
			turn.side.add(p.unit, sample)
			if sample.Wrong > 0 {
				note("%s: wrong answers, such as: %v", turn.side.Name, sample.fault)
			}
		}
		after, err := subject.replays(ctx)
		if err != nil {
			return row, err
		}
		if share, ok := after.share(before, p.layer); p.layer != "" && ok && share < mostly {
			note("only %.0f %% of the answers came from the layer %q", 100*share, p.layer)
		}
		// What a turn leaves to be written falls on the one after it: on each side's in turn.
		slices.Reverse(turns)
		s.say("  %3d connections, round %d: %s against %s", connections, round+1,
			p.unit.format(row.Subject.Values[round]), p.unit.format(row.Baseline.Values[round]))
	}
	row.conclude()
	return row, nil
}

// mostly is the share of answers from the layer that a path is about, below
// which it is said that they were not.
const mostly = 0.98

func (s *stage) turn(ctx context.Context, t *target, connections int) (Sample, error) {
	l := load{
		workers: connections, warm: s.c.Window / 4, window: s.c.Window,
		make: func(i int) (worker, error) { return t.worker(ctx, i) },
	}
	return l.run(ctx)
}

func (t *target) replays(ctx context.Context) (Layers, error) {
	if t.layers == nil {
		return nil, nil
	}
	return t.layers(ctx)
}
