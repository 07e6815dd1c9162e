package drive

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/wire"
)

// Identity is a user and the token that proves it.
type Identity struct{ User, Token string }

// Options are what a driver works with.
type Options struct {
	Client      *wire.Client
	Source      *scenario.Source
	Users       []Identity
	Log         *history.Log
	Recorder    *measure.Recorder
	MaxInFlight int     // requests under way at once
	Webhook     *Signer // nil without callbacks
}

// Driver sends the intents of one run.
type Driver struct {
	Options
	start  time.Time
	quit   context.Context // ends waits: retries and repeats that are still to come
	stop   context.CancelFunc
	hard   context.Context // ends dials
	abort  context.CancelFunc
	wg     sync.WaitGroup
	flying atomic.Int64

	planned, droppedStarts, droppedFollowUps atomic.Int64
}

// New returns a driver whose clock starts now. Stop or Drain must end it.
func New(o Options) *Driver {
	d := &Driver{Options: o, start: time.Now()}
	d.hard, d.abort = context.WithCancel(context.Background())
	d.quit, d.stop = context.WithCancel(d.hard)
	return d
}

// Start is the instant from which all times of the run count.
func (d *Driver) Start() time.Time { return d.start }

// Open starts an intent at each arrival and returns after the last one, or when
// the context ends.
func (d *Driver) Open(ctx context.Context, arrivals iter.Seq[time.Duration]) {
	// Sleeping to the microsecond needs a thread of its own, see sleep.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var n uint64
	for due := range arrivals {
		if !SleepUntil(ctx, d.start.Add(due)) {
			return
		}
		d.planned.Add(1)
		number := n
		n++
		if d.flying.Load() >= int64(d.MaxInFlight) {
			d.droppedStarts.Add(1)
			continue
		}
		// The room is taken here and not in the goroutine: a burst that is due
		// at one instant must not pass the limit before its first member runs.
		d.flying.Add(1)
		d.wg.Go(func() { d.run(d.Source.Intent(number), due, true) })
	}
}

// Closed lets so many clients work for so long, each as fast as it is answered,
// and returns when their time is over or the context ends. What is measured is
// service time: a client that waits sends nothing.
func (d *Driver) Closed(ctx context.Context, clients int, length time.Duration) {
	ctx, cancel := context.WithDeadline(ctx, d.start.Add(length))
	defer cancel()
	var number atomic.Uint64
	for range clients {
		d.wg.Go(func() {
			for ctx.Err() == nil {
				d.planned.Add(1)
				d.flying.Add(1)
				d.run(d.Source.Intent(number.Add(1)-1), time.Since(d.start), true)
			}
		})
	}
	<-ctx.Done()
}

// Stop ends what is still to come: retries and repeats that wait are given up.
// Requests under way may finish.
func (d *Driver) Stop() { d.stop() }

// Drain waits for the intents that were started. When the context ends first it
// breaks off what is left and reports false.
func (d *Driver) Drain(ctx context.Context) bool {
	done := make(chan struct{})
	go func() { d.wg.Wait(); close(done) }()
	defer d.abort()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	d.abort()
	d.Client.Close()
	<-done
	return false
}

// Progress is where a run stands.
type Progress struct {
	Elapsed          time.Duration
	Planned          int64 // starts that were due
	DroppedStarts    int64 // of them, not made: no room
	DroppedFollowUps int64 // copies, retries and repeats not made: no room
	InFlight         int64
}

// Progress says where the run stands.
func (d *Driver) Progress() Progress {
	return Progress{
		Elapsed:          time.Since(d.start),
		Planned:          d.planned.Load(),
		DroppedStarts:    d.droppedStarts.Load(),
		DroppedFollowUps: d.droppedFollowUps.Load(),
		InFlight:         d.flying.Load(),
	}
}
