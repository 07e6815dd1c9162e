//go:build unix

package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// worker does one thing after another. Step returns nil when the answer was
// right; close ends it.
type worker struct {
	step  func(context.Context) error
	close func()
}

// load is a closed loop: so many workers, each as fast as it is answered.
type load struct {
	workers int
	warm    time.Duration // before the window, not counted
	window  time.Duration
	make    func(i int) (worker, error)
}

// Sample is what one turn of one side came to.
type Sample struct {
	PerSecond float64       `json:"per_second"`
	P50       time.Duration `json:"p50_ns"`
	P99       time.Duration `json:"p99_ns"`
	Right     int64         `json:"right"`
	Wrong     int64         `json:"wrong"`
	// ClientCPU is what the load generator itself spent on a step. It shares the
	// machine with what it measures.
	ClientCPU time.Duration `json:"client_cpu_ns"`

	fault error // one of the wrong ones
}

// tally is what one worker saw.
type tally struct {
	times []time.Duration
	wrong int64
	fault error
}

// tooWrong is the share of wrong answers above which a turn says nothing.
const tooWrong = 0.01

// run drives the load and counts what was finished inside the window.
func (l load) run(ctx context.Context) (Sample, error) {
	workers := make([]worker, l.workers)
	for i := range workers {
		w, err := l.make(i)
		if err != nil {
			return Sample{}, err
		}
		defer w.close() //nolint:revive // defer: one for each worker, at the end of the run
		workers[i] = w
	}
	runtime.GC() // what a turn left behind is not the next one's to clean up

	from := time.Now().Add(l.warm)
	until := from.Add(l.window)
	tallies := make([]tally, len(workers))
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() { tallies[i].fill(ctx, workers[i].step, from, until) })
	}
	var spent [2]time.Duration
	for i, at := range []time.Time{from, until} {
		sleepUntil(ctx, at)
		spent[i] = processorTime()
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return Sample{}, err
	}
	return summarise(tallies, l.window, spent[1]-spent[0])
}

func (t *tally) fill(ctx context.Context, step func(context.Context) error, from, until time.Time) {
	for ctx.Err() == nil {
		begin := time.Now()
		if !begin.Before(until) {
			return
		}
		err := step(ctx)
		end := time.Now()
		switch {
		case end.Before(from) || !end.Before(until):
		case err != nil:
			t.wrong++
			t.fault = err
		default:
			t.times = append(t.times, end.Sub(begin))
		}
	}
}

func summarise(tallies []tally, window, cpu time.Duration) (Sample, error) {
	var s Sample
	var times []time.Duration
	for i := range tallies {
		t := &tallies[i]
		times = append(times, t.times...)
		s.Wrong += t.wrong
		if t.fault != nil {
			s.fault = t.fault
		}
	}
	s.Right = int64(len(times))
	if s.Right == 0 || float64(s.Wrong) > tooWrong*float64(s.Right+s.Wrong) {
		if s.fault == nil {
			return s, fmt.Errorf("nothing was answered within %v", window)
		}
		return s, fmt.Errorf("%d of %d answers were wrong: %w", s.Wrong, s.Right+s.Wrong, s.fault)
	}
	slices.Sort(times)
	s.PerSecond = float64(s.Right) / window.Seconds()
	s.P50, s.P99 = quantile(times, 0.5), quantile(times, 0.99)
	s.ClientCPU = cpu / time.Duration(s.Right+s.Wrong)
	return s, nil
}

// quantile is the smallest time that a share of all does not exceed.
func quantile(sorted []time.Duration, share float64) time.Duration {
	i := int(share*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func sleepUntil(ctx context.Context, at time.Time) {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
