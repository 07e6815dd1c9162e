package measure

import (
	"runtime"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const (
	shortest = 1
	longest  = int64(time.Hour / time.Microsecond) // histograms count microseconds
	digits   = 3
)

// NewHistogram returns an empty histogram of the one shape that is used, so that
// any two can be merged.
func NewHistogram() *hdr.Histogram { return hdr.New(shortest, longest, digits) }

// Shape is what a histogram of [NewHistogram] can hold, in microseconds, and with
// how many significant digits.
func Shape() (lowest, highest, figures int64) { return shortest, longest, digits }

// Record puts a duration into a histogram, to its nearest representable value.
func Record(h *hdr.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(d.Microseconds(), 0), longest)) // within the range by construction
}

// Sample is one finished request.
type Sample struct {
	Outcome  Outcome
	Response time.Duration // from when it was due
	Service  time.Duration // from when it was sent
	Sent     bool          // otherwise there is no service time
	Lag      time.Duration // from when it was due to when the generator took it up
}

// Recorder takes samples from many goroutines.
type Recorder struct{ shards []shard }

type shard struct {
	mu sync.Mutex
	totals
	window *hdr.Histogram // response times since the last snapshot
	_      [64]byte       // shards must not share a cache line
}

type totals struct {
	response, service [outcomes]*hdr.Histogram
	lag               *hdr.Histogram
	counts            Counts
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder {
	r := &Recorder{shards: make([]shard, 2*runtime.GOMAXPROCS(0))}
	for i := range r.shards {
		r.shards[i].window = NewHistogram()
		r.shards[i].lag = NewHistogram()
	}
	return r
}

// Add takes one sample. The spread tells shards apart; any number does.
func (r *Recorder) Add(spread uint64, s Sample) {
	k := &r.shards[spread%uint64(len(r.shards))]
	k.mu.Lock()
	defer k.mu.Unlock()
	k.counts[s.Outcome]++
	Record(lazy(&k.response[s.Outcome]), s.Response)
	if s.Sent {
		Record(lazy(&k.service[s.Outcome]), s.Service)
	}
	Record(k.lag, s.Lag)
	Record(k.window, s.Response)
}

func lazy(h **hdr.Histogram) *hdr.Histogram {
	if *h == nil {
		*h = NewHistogram()
	}
	return *h
}

// Counts are the requests so far, by outcome.
type Counts [outcomes]int64

// Total is the number of requests.
func (c *Counts) Total() int64 {
	var n int64
	for _, k := range c {
		n += k
	}
	return n
}

// Counts returns the requests so far.
func (r *Recorder) Counts() Counts {
	var c Counts
	for i := range r.shards {
		k := &r.shards[i]
		k.mu.Lock()
		for o, n := range k.counts {
			c[o] += n
		}
		k.mu.Unlock()
	}
	return c
}

// Window is what a live view shows: the response times since the window before.
type Window struct {
	N             int64
	P50, P99, Max time.Duration
}

// Next closes the current window and returns it.
func (r *Recorder) Next() Window {
	var w Window
	all := NewHistogram()
	for i := range r.shards {
		k := &r.shards[i]
		k.mu.Lock()
		all.Merge(k.window)
		k.window.Reset()
		k.mu.Unlock()
	}
	w.N = all.TotalCount()
	w.P50, w.P99, w.Max = At(all, 50), At(all, 99), At(all, 100)
	return w
}

// At is a percentile of a histogram.
func At(h *hdr.Histogram, percentile float64) time.Duration {
	return time.Duration(h.ValueAtPercentile(percentile)) * time.Microsecond
}

// Times is everything that was measured.
type Times struct {
	Response, Service map[Outcome]*hdr.Histogram // only outcomes that occurred
	Lag               *hdr.Histogram
}

// Times merges the shards. Call it when no samples come any more.
func (r *Recorder) Times() Times {
	t := Times{map[Outcome]*hdr.Histogram{}, map[Outcome]*hdr.Histogram{}, NewHistogram()}
	for i := range r.shards {
		k := &r.shards[i]
		k.mu.Lock()
		for o := range outcomes {
			merge(t.Response, o, k.response[o])
			merge(t.Service, o, k.service[o])
		}
		t.Lag.Merge(k.lag)
		k.mu.Unlock()
	}
	return t
}

func merge(into map[Outcome]*hdr.Histogram, o Outcome, h *hdr.Histogram) {
	if h == nil {
		return
	}
	if into[o] == nil {
		into[o] = NewHistogram()
	}
	into[o].Merge(h)
}
