package faultproxy

import (
	"sync"
	"time"
)

// weather is what holds for all connections of a proxy at the moment.
type weather struct {
	mu      sync.Mutex
	held    bool          // nothing gets through
	delay   time.Duration // everything takes this long
	changed chan struct{} // closed at the next change
}

func newWeather() *weather { return &weather{changed: make(chan struct{})} }

func (w *weather) set(held bool, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held, w.delay = held, delay
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *weather) now() (held bool, delay time.Duration, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held, w.delay, w.changed
}

// wait waits until what was read at the given time may go on; false means that
// the link ended meanwhile.
func (w *weather) wait(readAt time.Time, done <-chan struct{}) bool {
	for {
		held, delay, changed := w.now()
		remaining := delay - time.Since(readAt)
		if !held && remaining <= 0 {
			return true
		}
		if !waitChange(held, remaining, changed, done) {
			return false
		}
	}
}

// waitChange waits for a change of the weather or, if bytes are only delayed,
// for the delay to be over.
func waitChange(held bool, remaining time.Duration, changed, done <-chan struct{}) bool {
	var elapsed <-chan time.Time
	if !held {
		timer := time.NewTimer(remaining)
		defer timer.Stop()
		elapsed = timer.C
	}
	select {
	case <-elapsed:
		return true
	case <-changed:
		return true
	case <-done:
		return false
	}
}
