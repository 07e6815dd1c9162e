package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A look that fails once is followed by another, well within the manager's patience.
func TestOneLookThatFailsEndsNoGateway(t *testing.T) {
	t.Parallel()
	looks := looked(t, 2, func(n int) error {
		if n == 1 {
			return errors.New("it is busy")
		}
		return nil
	})
	require.Less(t, looks[1], 9*patienceOfManager/10)
}

// A look takes its time, and is no reason for the next to be late.
func TestSlowLooksComeInTime(t *testing.T) {
	t.Parallel()
	looks := looked(t, 4, func(int) error {
		<-time.After(4 * time.Second)
		return nil
	})
	for i := range looks[1:] {
		require.LessOrEqual(t, looks[i+1]-looks[i], patienceOfManager/2)
	}
}

const patienceOfManager = 10 * time.Second

// looked returns when each of some looks began.
func looked(t *testing.T, times int, look func(n int) error) (at []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		s := supervisor{watchdog: patienceOfManager}
		s.signsOfLife(ctx, slog.New(slog.DiscardHandler), func(context.Context) error {
			if at = append(at, time.Since(began)); len(at) == times {
				cancel()
			}
			return look(len(at))
		})
	})
	return at
}
