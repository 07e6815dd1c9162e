//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/pace"
)

// mostUnderWay bounds the requests of an open loop that are under way at once.
// One that is due while there is no room is dropped, and counted.
const mostUnderWay = 4000

// stream is one kind of request within an open loop.
type stream struct {
	rate float64          // starts per second
	next func() request   // the following one; called from one goroutine
	took []*periodTallies // one for each period of the loop
}

// periodTallies are the answers to what was due within one period.
type periodTallies struct {
	*measure.Recorder
	due, dropped int64        // belong to the goroutine that starts requests
	silent       atomic.Int64 // "try later" that does not say when
}

// openLoop starts requests when they are due, whatever the gateway does: what it
// delays is seen by those that come after, as customers would see it.
type openLoop struct {
	addr    string
	ready   int           // connections that are opened before
	periods int           // that are told apart, by when a request was due
	period  time.Duration // the length of one
	streams []*stream

	mu        sync.Mutex
	all, idle []*connection
}

// run starts all requests and waits for their answers. Begin is called at the
// instant from which periods count. The load ends with ctx.
func (o *openLoop) run(ctx context.Context, begin func(start time.Time)) error {
	total := 0.0
	for _, s := range o.streams {
		total += s.rate
		s.took = nil
		for range o.periods {
			s.took = append(s.took, &periodTallies{Recorder: measure.NewRecorder()})
		}
	}
	defer o.close()
	unhook := context.AfterFunc(ctx, o.interrupt)
	defer unhook()
	if err := o.connect(ctx); err != nil {
		return err
	}
	runtime.GC()
	o.start(ctx, total, begin)
	return context.Cause(ctx)
}

func (o *openLoop) connect(ctx context.Context) error {
	o.all, o.idle = nil, nil
	for range o.ready {
		o.giveBack(o.another())
	}
	ready := slices.Clone(o.idle)
	return everyone(ctx, len(ready), func(ctx context.Context, i int) error { return ready[i].dial(ctx) })
}

// another adds a connection, which dials when it is first used.
func (o *openLoop) another() *connection {
	k := &connection{addr: o.addr}
	o.all = append(o.all, k)
	return k
}

// interrupt makes all who wait for an answer give up.
func (o *openLoop) interrupt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.all {
		k.interrupt()
	}
}

// close is for when no request is under way.
func (o *openLoop) close() {
	for _, k := range o.all {
		k.close()
	}
}

// start is the clock of the loop, on a thread of its own: see [drive.SleepUntil].
func (o *openLoop) start(ctx context.Context, total float64, begin func(time.Time)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	var flying atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	from := time.Now()
	begin(from)
	number := uint64(0)
	for due := range pace.Constant(total, time.Duration(o.periods)*o.period).Poisson(random) {
		if !drive.SleepUntil(ctx, from.Add(due)) {
			return
		}
		s := o.choose(random.Float64() * total)
		into := s.took[min(int(due/o.period), o.periods-1)]
		into.due++
		if flying.Load() >= mostUnderWay {
			into.dropped++
			continue
		}
		flying.Add(1)
		number++
		r, n := s.next(), number
		wg.Go(func() {
			defer flying.Add(-1)
			into.take(ctx, n, o, &r, from.Add(due))
		})
	}
}

func (o *openLoop) choose(x float64) *stream {
	for _, s := range o.streams[:len(o.streams)-1] {
		if x < s.rate {
			return s
		}
		x -= s.rate
	}
	return o.streams[len(o.streams)-1]
}

// take sends one request and records what became of it.
func (p *periodTallies) take(ctx context.Context, n uint64, o *openLoop, r *request, due time.Time) {
	k := o.borrow()
	defer o.giveBack(k)
	begun := time.Now()
	err := k.post(ctx, r)
	done := time.Now()
	got := measure.Transport
	if err == nil {
		got = k.answer.outcome()
	}
	if got == measure.Unavailable && k.answer.after < 1 {
		p.silent.Add(1)
	}
	p.Add(n, measure.Sample{Outcome: got, Response: done.Sub(due), Service: done.Sub(begun), Sent: true, Lag: begun.Sub(due)})
}

func (o *openLoop) borrow() *connection {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.idle)
	if n == 0 {
		return o.another()
	}
	k := o.idle[n-1]
	o.idle = o.idle[:n-1]
	return k
}

func (o *openLoop) giveBack(k *connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.idle = append(o.idle, k)
}

// seen is what one stream came to in one period.
type seen struct {
	measure.Counts
	times                measure.Times
	due, dropped, silent int64
}

func (s *stream) seen(period int) seen {
	t := s.took[period]
	return seen{t.Counts(), t.Times(), t.due, t.dropped, t.silent.Load()}
}

// at is a percentile of the right answers, as a figure; there may be none.
func (s *seen) at(o measure.Outcome, percentile float64) Figure {
	h := s.times.Response[o]
	if h == nil {
		return untold()
	}
	return once(measure.At(h, percentile).Seconds())
}

// others counts what is none of the named outcomes.
func (s *seen) others(named ...measure.Outcome) int64 {
	n := s.Total()
	for _, o := range named {
		n -= s.Counts[o]
	}
	return n
}

var errNothingRight = errors.New("nothing was answered as it should be")

// right says that a stream was answered at all.
func (s *seen) right(name string, want measure.Outcome) error {
	if s.Counts[want] == 0 {
		return fmt.Errorf("%s: %w (%d requests were due)", name, errNothingRight, s.due)
	}
	return nil
}
