package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
)

// App is one gateway with everything it needs.
type App struct {
	log      *slog.Logger
	lost     func() int64 // lines of it; nil: none
	grace    time.Duration
	settings *settings
	public   *gateway.Server
	admin    *gateway.Admin
	tracer   trace.Tracer // nil: nothing is traced

	insight insightParts
	moved   chan struct{} // has room for one: the Redis breaker has moved

	opened []part // in this order; closed in reverse
	close  sync.Once
	closed error
}

// part is something that was opened and must be closed.
type part struct {
	name  string
	close func(context.Context) error
}

// New is [NewLive] for a configuration that only the admin API changes.
func New(ctx context.Context, cfg configs.Config, log *slog.Logger) (*App, error) {
	return NewLive(ctx, Live{Loaded: &configs.Loaded{Config: cfg}}, log)
}

// NewLive opens the parts and binds the listeners: from here on, connections are
// accepted by the kernel and answered as soon as [App.Run] runs. An App that is
// never run must be closed.
func NewLive(ctx context.Context, live Live, log *slog.Logger) (*App, error) {
	cfg := live.Loaded.Config
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s, err := newSettings(live, log)
	if err != nil {
		return nil, err
	}
	a := &App{log: log, lost: live.LinesLost, grace: cfg.ShutdownGrace, settings: s, moved: make(chan struct{}, 1)}
	if err := a.open(ctx, &cfg); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Addr is where orders are taken.
func (a *App) Addr() string { return a.public.Addr().String() }

// AdminAddr is where the admin listener is.
func (a *App) AdminAddr() string { return a.admin.Addr().String() }

// Run serves until ctx ends or a listener fails, and then closes the App.
func (a *App) Run(ctx context.Context) error {
	ended := make(chan error, 2)
	var serving sync.WaitGroup
	for _, serve := range []func() error{a.public.Serve, a.admin.Serve} {
		serving.Go(func() { ended <- serve() })
	}
	a.log.InfoContext(ctx, "taking orders", "listen", a.Addr(), "admin", a.AdminAddr())
	var err error
	select {
	case <-ctx.Done():
		a.log.InfoContext(ctx, "stopping", "grace_ms", a.grace.Milliseconds())
	case err = <-ended:
	}
	err = errors.Join(err, a.Close())
	serving.Wait()
	if err == nil {
		a.log.InfoContext(ctx, "stopped")
	}
	return err
}

// Close stops in the order in which nothing is lost: the gateway says that it
// is not ready, the listeners answer what is under way, the ledger decides what
// waits, Redis is let go, and the connections close. All of it has the shutdown
// grace and no more. Calling it again returns the same.
func (a *App) Close() error {
	a.close.Do(func() {
		// Detached: it runs because the context of the App has ended.
		ctx, cancel := context.WithTimeout(context.Background(), a.grace)
		defer cancel()
		var errs []error
		for _, p := range slices.Backward(a.opened) {
			if err := p.close(ctx); err != nil {
				errs = append(errs, fmt.Errorf("close the %s: %w", p.name, err))
			}
		}
		a.closed = errors.Join(errs...)
	})
	return a.closed
}

// keep notes a part for [App.Close].
func (a *App) keep(name string, closing func(context.Context) error) {
	a.opened = append(a.opened, part{name, closing})
}
