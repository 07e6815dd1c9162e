package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncegate/oncegate/configs"
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
		stopped := make(chan struct{})
		go func() {
			running.Wait()
			close(stopped)
		}()
		select {
		case <-stopped:
			return nil
		case <-closing.Done():
			return fmt.Errorf("it is still working: %w", closing.Err())
		}
	})
}

// openBackground starts what the configuration asks for beside requests.
func (a *App) openBackground(cfg *configs.Config, s *store.Store) {
	for range cfg.Batches.AsyncWorkers {
		a.background("worker of deferred batches", func(ctx context.Context) {
			s.RunDeferred(ctx, store.DeferredOptions{Lease: cfg.Batches.AsyncLease})
		})
	}
	if every := cfg.Retention.CompactEvery; every > 0 {
		age := cfg.Retention.Responses
		a.background("compaction", func(ctx context.Context) { a.compactEvery(ctx, s, every, age) })
	}
}

func (a *App) compactEvery(ctx context.Context, s *store.Store, every, age time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			done, err := s.Compact(ctx, store.CompactOptions{OlderThan: age})
			switch {
			case ctx.Err() != nil:
			case err != nil:
				a.log.WarnContext(ctx, "compaction stopped; it goes on at its next turn", "error", err)
			case done != store.Compacted{}:
				a.log.InfoContext(ctx, "old answers were compacted", "emptied", done.Emptied, "removed", done.Removed)
			}
		}
	}
}
