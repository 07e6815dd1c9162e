package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
)

// An idle gateway tries a Redis that was away again soon, and one that is well
// seldom.
func TestHealthIsAskedSoonerWhileSomethingIsAmiss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		var asked atomic.Int32
		health := gateway.NewHealth(gateway.HealthOptions{
			Checks: []gateway.Check{{Name: "redis", Func: func(context.Context) error {
				asked.Add(1)
				if away.Load() {
					return errors.New("away")
				}
				return nil
			}}},
			Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		})
		moved := make(chan struct{}, 1)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watchHealth(ctx, health, moved)
		}()
		within := func(d time.Duration) int32 { // of the bubble's own time
			before := asked.Load()
			<-time.After(d)
			synctest.Wait()
			return asked.Load() - before
		}
		require.EqualValues(t, 2, within(2*healthPoll+healthRetry/2))
		away.Store(true)
		moved <- struct{}{}
		require.EqualValues(t, 1, within(healthRetry))
		require.EqualValues(t, 3, within(3*healthRetry))
		away.Store(false)
		require.EqualValues(t, 1, within(healthRetry))
		require.Zero(t, within(healthPoll-healthRetry))
		for range 10 { // moves alone must not put it off
			moved <- struct{}{}
			within(healthRetry / 4)
		}
		require.GreaterOrEqual(t, asked.Load(), int32(2+1+3+1+2))
		stop()
		<-ended
	})
}

// A run may take hours. What the settings say by then to keep for longer is kept.
func TestCompactionEndsWhenAnswersAreToBeKeptForLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &App{settings: &settings{}}
		keep := func(days int) {
			r := configs.Retention{Responses: time.Duration(days) * 24 * time.Hour, CompactEvery: time.Hour}
			a.settings.replace(&snapshot{loaded: &configs.Loaded{Config: configs.Config{Retention: r}}})
		}
		keep(2)
		begun, over := make(chan time.Duration, 1), make(chan struct{}, 1)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.compactNowAndThen(ctx, func(ctx context.Context, age time.Duration) {
				begun <- age
				<-ctx.Done()
				over <- struct{}{}
			})
		}()
		require.Equal(t, 48*time.Hour, <-begun)
		keep(1) // what is old for the run is older for this
		synctest.Wait()
		require.Empty(t, over)
		keep(30)
		<-over
		require.Equal(t, 30*24*time.Hour, <-begun, "at its next turn")
		stop()
		<-over
		<-ended
	})
}
