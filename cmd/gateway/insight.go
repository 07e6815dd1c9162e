package main

import (
	"context"
	"time"

	"github.com/oncegate/oncegate/cache"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/insight"
	"github.com/oncegate/oncegate/order"
)

// observers tells several of the same.
type observers []order.Observer

// Decided implements [order.Observer].
func (all observers) Decided(a order.Answer, err error, took time.Duration) {
	for _, o := range all {
		o.Decided(a, err, took)
	}
}

// Noticed implements [order.Observer].
func (all observers) Noticed(a order.Anomaly, age time.Duration) {
	for _, o := range all {
		o.Noticed(a, age)
	}
}

// newInsight makes the recorder, which the other parts report to. What it asks
// of them is filled in as they open, before it runs.
func (a *App) newInsight() (err error) {
	a.insight.Recorder, err = insight.New(insight.Options{
		Now:        time.Now,
		Logger:     a.log,
		ReceiptTTL: func() time.Duration { return a.settings.now().TTL.Receipt },
		Bound:      func() time.Duration { return a.settings.now().ReceiptBound() },
		Footprint: func(ctx context.Context) (insight.Footprint, error) {
			f, err := a.insight.filter.Footprint(ctx)
			return insight.Footprint{BytesPerKey: f.BytesPerKey, Entries: f.Entries, Overhead: f.Overhead}, err
		},
		State: a.surroundings,
	})
	return err
}

// insightParts are the recorder and what it asks.
type insightParts struct {
	*insight.Recorder
	filter *cache.Filter
	health *gateway.Health
}

// surroundings is what the console shows beside the recorder's own numbers.
func (a *App) surroundings(ctx context.Context) insight.State {
	states := a.insight.health.States(ctx)
	return insight.State{Redis: states["redis"], MySQL: states["mysql"], Config: a.settings.newest()}
}

// openInsight runs the recorder until everything that reports to it is closed.
func (a *App) openInsight(f *cache.Filter, h *gateway.Health) {
	a.insight.filter, a.insight.health = f, h
	a.background("insight", a.insight.Run)
}
