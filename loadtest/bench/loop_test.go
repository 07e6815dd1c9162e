//go:build unix

package bench

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func looping(step func(context.Context) error, closed *atomic.Int64) load {
	return load{
		workers: 3, warm: 10 * time.Millisecond, window: 60 * time.Millisecond,
		make: func(int) (worker, error) {
			return worker{step: step, close: func() { closed.Add(1) }}, nil
		},
	}
}

// looped runs a loop with a longer window for as long as the machine is too busy
// to finish a step in it.
func looped(t *testing.T, step func(context.Context) error) (Sample, load, error) {
	t.Helper()
	var closed atomic.Int64
	l := looping(step, &closed)
	s, err := l.run(t.Context())
	for range 4 {
		if err == nil || !strings.Contains(err.Error(), "nothing was answered") {
			break
		}
		l.window *= 4
		closed.Store(0)
		s, err = l.run(t.Context())
	}
	require.EqualValues(t, l.workers, closed.Load())
	return s, l, err
}

// tick is a step of about a millisecond.
func tick(ctx context.Context) error {
	sleepUntil(ctx, time.Now().Add(time.Millisecond))
	return nil
}

func TestLoopCountsWhatEndsInsideTheWindow(t *testing.T) {
	t.Parallel()
	var steps atomic.Int64
	s, l, err := looped(t, func(ctx context.Context) error { steps.Add(1); return tick(ctx) })
	require.NoError(t, err)
	require.Positive(t, s.Right)
	require.LessOrEqual(t, s.Right, steps.Load(), "the warm-up was counted")
	require.InDelta(t, float64(s.Right)/l.window.Seconds(), s.PerSecond, 0.001)
	require.GreaterOrEqual(t, s.P50, time.Millisecond)
	require.GreaterOrEqual(t, s.P99, s.P50)
}

func TestLoopRefusesToSpeakOfWrongAnswers(t *testing.T) {
	t.Parallel()
	broken := errors.New("status 503")
	_, _, err := looped(t, func(ctx context.Context) error { return errors.Join(tick(ctx), broken) })
	require.ErrorIs(t, err, broken)
}

func TestAFewWrongAnswersAreCountedApart(t *testing.T) {
	t.Parallel()
	s, err := summarise([]tally{
		{times: make([]time.Duration, 150), wrong: 1, fault: errors.New("reset")},
		{times: make([]time.Duration, 50)},
	}, time.Second, 0)
	require.NoError(t, err)
	require.EqualValues(t, 200, s.Right)
	require.EqualValues(t, 1, s.Wrong)
	require.EqualError(t, s.fault, "reset")
	_, err = summarise([]tally{{}}, time.Second, 0)
	require.ErrorContains(t, err, "nothing was answered")
}

func TestLoopEndsWithItsContext(t *testing.T) {
	t.Parallel()
	var closed atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	l := looping(func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() }, &closed)
	l.window = time.Hour
	_, err := l.run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 3, closed.Load())
}

func TestLoopClosesTheWorkersBeforeOneThatCannotBeMade(t *testing.T) {
	t.Parallel()
	var closed atomic.Int64
	l := looping(tick, &closed)
	whole := l.make
	l.make = func(i int) (worker, error) {
		if i == 2 {
			return worker{}, errors.New("no more sockets")
		}
		return whole(i)
	}
	_, err := l.run(t.Context())
	require.EqualError(t, err, "no more sockets")
	require.EqualValues(t, 2, closed.Load())
}
