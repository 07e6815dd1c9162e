package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/store"
)

// background keeps work going until the App closes: it is stopped, and waited
// for, before what it uses is closed.
func (a *App) background(name string, work func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { work(ctx) })
	a.keep(name, func(closing context.Context) error {
		cancel()
		return within(closing, func() error {
			running.Wait()
			return nil
		})
	})
}

// within waits for an end that has no bound of its own until ctx ends.
func within(ctx context.Context, end func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("it is still working: %w", ctx.Err())
	}
}

// openBackground starts what the configuration asks for beside requests.
func (a *App) openBackground(cfg *configs.Config, s *store.Store) {
	for range cfg.Batches.AsyncWorkers {
		a.background("worker of deferred batches", func(ctx context.Context) {
			s.RunDeferred(ctx, store.DeferredOptions{Lease: cfg.Batches.AsyncLease})
		})
	}
	a.background("watch of compaction", func(ctx context.Context) {
		s.WatchBacklog(ctx, func() time.Duration { return a.settings.now().Retention.Responses })
	})
	a.background("compaction", func(ctx context.Context) {
		a.compactNowAndThen(ctx, func(ctx context.Context, age time.Duration) { a.compact(ctx, s, age) })
	})
}

// How often a gateway asks how its dependencies are when nobody else does, and
// how soon while something is amiss: a breaker that left Redis alone closes by an
// operation, and an idle gateway that nobody probes would have none.
const (
	healthPoll  = 5 * time.Second
	healthRetry = time.Second
)

// watchHealth asks until ctx ends, and soon after the breaker has moved. The
// answers are for whoever looks.
func watchHealth(ctx context.Context, health *gateway.Health, moved <-chan struct{}) {
	next := time.Now().Add(healthPoll)
	sooner := func() {
		if soon := time.Now().Add(healthRetry); soon.Before(next) {
			next = soon
		}
	}
	timer := time.NewTimer(healthPoll)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(next))
		select {
		case <-ctx.Done():
			return
		case <-moved:
			sooner()
		case <-timer.C:
			states := health.States(ctx)
			next = time.Now().Add(healthPoll)
			for _, state := range states {
				if state != "ok" {
					sooner()
				}
			}
		}
	}
}

// compactNowAndThen compacts as often as the settings in force say, which may
// become never, and again something.
func (a *App) compactNowAndThen(ctx context.Context, compact func(ctx context.Context, age time.Duration)) {
	last := time.Now()
	for {
		in := a.settings.current.Load()
		every := in.loaded.Config.Retention.CompactEvery
		var due <-chan time.Time
		if every > 0 {
			due = time.After(time.Until(last.Add(every)))
		}
		select {
		case <-ctx.Done():
			return
		case <-in.over:
		case <-due:
			a.compactAsSet(ctx, compact)
			last = time.Now()
		}
	}
}

// compactAsSet compacts as the settings said when it began, and ends early where
// answers are to be kept for longer meanwhile: a refusal that is forgotten does not
// come back.
func (a *App) compactAsSet(ctx context.Context, compact func(ctx context.Context, age time.Duration)) {
	in := a.settings.current.Load()
	age := in.loaded.Config.Retention.Responses
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var working sync.WaitGroup
	defer working.Wait()
	ended := make(chan struct{})
	working.Go(func() {
		defer close(ended)
		compact(ctx, age)
	})
	for {
		select {
		case <-ended:
			return
		case <-in.over:
			if in = a.settings.current.Load(); in.loaded.Config.Retention.Responses > age {
				cancel()
				return
			}
		}
	}
}

func (a *App) compact(ctx context.Context, s *store.Store, age time.Duration) {
	done, err := s.Compact(ctx, store.CompactOptions{OlderThan: age})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		a.log.WarnContext(ctx, "compaction stopped; it goes on at its next turn", "error", err)
	case done != store.Compacted{}:
		a.log.InfoContext(ctx, "old answers were compacted", "emptied", done.Emptied, "removed", done.Removed)
	}
}
