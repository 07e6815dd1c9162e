package insight

import (
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// Event is one thing that happened, as JSON.
type Event struct {
	Name string // stats, conflict or breaker
	Data []byte
}

const eventConflict = "conflict"

// Bounds of the feed.
const (
	maxSubscribers = 32
	// eventsWaiting is how far a subscriber may fall behind before it is let go.
	eventsWaiting = 64
	// conflictsWaiting is how many events may wait for a subscriber who is still
	// told of a conflict. Clients make conflicts, at any rate, and must not be able
	// to have a subscriber let go.
	conflictsWaiting = eventsWaiting / 2
	// conflictsTold is of how many conflicts is told in a second: each is encoded
	// while a request waits. All are counted and listed.
	conflictsTold = 20
)

// ErrTooManySubscribers says that no more can be served.
var ErrTooManySubscribers = errors.New("too many listen to the events already")

// feed hands events to whoever listens. It never waits for a subscriber. The
// zero value is ready.
type feed struct {
	mu          sync.Mutex
	subscribers map[chan Event]struct{}
	closed      bool
	told        int       // conflicts
	since       time.Time // when told began to count
}

// Subscribe returns events from now on. The channel is closed when the recorder
// ends, when cancel is called, and when the subscriber is too slow. Of
// many conflicts at once some are passed over.
func (r *Recorder) Subscribe() (events <-chan Event, cancel func(), err error) {
	f := &r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.subscribers) >= maxSubscribers {
		return nil, nil, ErrTooManySubscribers
	}
	c := make(chan Event, eventsWaiting)
	if f.closed {
		close(c)
		return c, func() {}, nil
	}
	if f.subscribers == nil {
		f.subscribers = map[chan Event]struct{}{}
	}
	f.subscribers[c] = struct{}{}
	return c, func() { f.leave(c) }, nil
}

func (f *feed) leave(c chan Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(c)
}

// drop closes a subscriber's channel, once. The caller holds mu.
func (f *feed) drop(c chan Event) {
	if _, there := f.subscribers[c]; there {
		delete(f.subscribers, c)
		close(c)
	}
}

// wanted says whether anybody listens.
func (f *feed) wanted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subscribers) > 0
}

// conflict publishes a conflict, unless there were too many just now.
func (f *feed) conflict(now time.Time, c Conflict) {
	if f.tells(now) {
		f.publish(eventConflict, c)
	}
}

func (f *feed) tells(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.since) >= time.Second {
		f.since, f.told = now, 0
	}
	f.told++
	return f.told <= conflictsTold
}

// publish encodes an event once and gives it to everybody.
func (f *feed) publish(name string, v any) {
	if !f.wanted() {
		return
	}
	data, err := json.Marshal(v)
	if err != nil {
		return // a value of ours always has a JSON form
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.subscribers {
		if name == eventConflict && len(c) >= conflictsWaiting {
			continue
		}
		select {
		case c <- Event{name, data}:
		default:
			f.drop(c)
		}
	}
}

// Close ends the events of everybody who listens, now and from now on.
func (r *Recorder) Close() {
	f := &r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for c := range f.subscribers {
		f.drop(c)
	}
}
