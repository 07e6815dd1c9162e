package loadtest

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/pace"
	"github.com/oncegate/oncegate/loadtest/result"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/verdict"
	"github.com/oncegate/oncegate/loadtest/wire"
)

// interruptedDrain is how long requests under way may still take after an
// interruption.
const interruptedDrain = 5 * time.Second

// Run carries out a run. When the context ends, no more requests are started and
// the run is judged as far as it got. The error is [ErrUnreachable], a
// [*RefusedError], a [*UsedError], or says what is wrong with the configuration:
// then there is no result.
func Run(ctx context.Context, c Config) (*result.Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	plan, err := c.Shape.Plan()
	if err != nil && c.Clients == 0 {
		return nil, err
	}
	client, err := wire.New(wire.Options{Target: c.Target, Timeout: c.Timeout, TLS: c.TLS})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	r := &run{Config: c, plan: plan, client: client, log: &history.Log{}, recorder: measure.NewRecorder(), phase: make(chan Phase)}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	r.send(ctx)
	return r.judge(ctx), nil
}

type run struct {
	Config
	plan     pace.Plan
	client   *wire.Client
	log      *history.Log
	recorder *measure.Recorder
	driver   *drive.Driver
	phase    chan Phase
	watched  chan struct{}

	policy      []byte
	sentAt      wire.Counters // before the first request of the run
	sent        wire.Counters
	progress    drive.Progress
	drained     bool
	interrupted bool
}

// send drives the scenario to its end.
func (r *run) send(ctx context.Context) {
	r.sentAt = r.client.Counters()
	source := scenario.NewSource(r.Scenario, r.Run, r.Seed, len(r.Users))
	r.driver = drive.New(drive.Options{
		Client: r.client, Source: source, Users: r.Users, Log: r.log, Recorder: r.recorder,
		MaxInFlight: r.MaxInFlight, Webhook: r.Webhook,
	})
	r.watch()
	switch {
	case r.Clients > 0:
		r.driver.Closed(ctx, r.Clients, r.Shape.Length)
	case r.Poisson:
		// A stream of its own: the arrivals must not change with the intents.
		r.driver.Open(ctx, r.plan.Poisson(rand.New(rand.NewPCG(r.Seed, ^uint64(0)))))
	default:
		r.driver.Open(ctx, r.plan.Even())
	}
	r.enter(Draining)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Drain)
	defer cancel()
	if ctx.Err() == nil {
		// An interruption while retries wait ends the waiting, not the answers.
		release := context.AfterFunc(ctx, func() { r.driver.Stop(); time.AfterFunc(interruptedDrain, cancel) })
		defer release()
	} else {
		r.driver.Stop()
		time.AfterFunc(interruptedDrain, cancel)
	}
	r.drained = r.driver.Drain(drain)
	r.interrupted = ctx.Err() != nil
	r.progress = r.driver.Progress()
	r.sent = r.client.Counters()
	r.client.Close() // the audit may need its sockets
}

const (
	watchEvery  = 200 * time.Millisecond
	windowEvery = 5 // ticks: percentiles of less than a second jump about
)

// watch tells the observer where the run stands until judge ends it.
func (r *run) watch() {
	r.watched = make(chan struct{})
	go func() {
		defer close(r.watched)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		phase, window := Sending, measure.Window{}
		for n := 1; ; n++ {
			r.show(phase, window)
			select {
			case <-tick.C:
				if n%windowEvery == 0 {
					window = r.recorder.Next()
				}
			case next, open := <-r.phase:
				if !open {
					return
				}
				phase = next
			}
		}
	}()
}

func (r *run) show(phase Phase, window measure.Window) {
	if r.Watch == nil {
		return
	}
	s := Snapshot{Phase: phase, Progress: r.driver.Progress(), Counts: r.recorder.Counts(), Window: window, Length: r.Shape.Length}
	if r.Clients == 0 {
		s.Rate = r.plan.Rate(s.Progress.Elapsed)
	}
	r.Watch(s)
}

func (r *run) enter(p Phase) { r.phase <- p }

// judge asks the deployment what it has and holds the answers against it. An
// interrupted run is judged too.
func (r *run) judge(ctx context.Context) *result.Result {
	ctx = context.WithoutCancel(ctx)
	cases := r.log.Cases()
	out := r.result(cases)
	v := &out.Verdict
	r.enter(Settling)
	pause(ctx, r.Settle)
	r.enter(Auditing)
	v.Findings = verdict.Answers(cases)
	if len(cases) > 0 || r.Audit == AuditOff {
		r.audit(ctx, cases, v)
	}
	check, cancel := context.WithTimeout(ctx, r.CheckTime)
	defer cancel()
	linearity, findings := verdict.Linearizable(check, cases, r.Dir)
	v.Linearity = linearity
	v.Findings.Merge(findings)
	v.Passed = v.Findings.Total() == 0 && (v.Audit != nil || r.Audit == AuditOff) && linearity.Unknown == 0
	for _, t := range r.Thresholds {
		out.Thresholds = append(out.Thresholds, t.Check(out))
	}
	close(r.phase)
	<-r.watched
	return out
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
