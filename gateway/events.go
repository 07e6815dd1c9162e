package gateway

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Bounds of one stream of events.
const (
	// eventPatience is how long a reader may take for one event; it is let go
	// then, and comes back.
	eventPatience = 5 * time.Second
	// streamLife is how long a token is believed without being shown again.
	streamLife = time.Hour
)

// streams ends what would otherwise keep a listener from stopping.
type streams struct {
	once sync.Once
	over chan struct{}
}

func newStreams() *streams { return &streams{over: make(chan struct{})} }

func (s *streams) end() { s.once.Do(func() { close(s.over) }) }

// until ends the context of a handler when the listener stops: a profile takes
// as long as its reader asks, and all that closes later would have no time left.
func (s *streams) until(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		served := make(chan struct{})
		var watch sync.WaitGroup
		defer watch.Wait()
		defer close(served)
		watch.Go(func() {
			select {
			case <-s.over:
				cancel()
			case <-served:
			}
		})
		serve(w, r.WithContext(ctx))
	}
}

// profile serves a profile. By itself net/http/pprof takes any number of seconds
// and extends the time for its answer by them: one request would have a gateway
// traced for days.
func (a *Admin) profile(serve http.HandlerFunc) http.HandlerFunc {
	served := a.streams.until(serve)
	most := a.o.Timeouts.Write
	return func(w http.ResponseWriter, r *http.Request) {
		// Set, so that it does not look for more in a body, which has no bound there.
		r.Form = r.URL.Query()
		seconds, err := strconv.ParseFloat(r.Form.Get("seconds"), 64)
		if (err == nil || errors.Is(err, strconv.ErrRange)) && !(seconds < most.Seconds()) { // what is no number is pprof's to say
			a.problem(w, faultAt("seconds", "must be less than "+strconv.FormatFloat(most.Seconds(), 'f', -1, 64)))
			return
		}
		served(w, r)
	}
}

// getEvents streams what happens, as server-sent events: "stats" once a second,
// "conflict" and "breaker" as they come. It ends when the listener stops and
// when the reader is too slow.
func (a *Admin) getEvents(w http.ResponseWriter, r *http.Request) {
	events, cancel, err := a.o.Insight.Subscribe()
	if err != nil {
		a.problem(w, newProblem(CodeOverloaded))
		return
	}
	defer cancel()
	life := time.NewTimer(streamLife)
	defer life.Stop()

	// The time limits of the listener are for requests that end.
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // without one, the stream ends sooner and the reader comes back
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", noStore)
	h.Set("X-Accel-Buffering", "no") // a proxy must not collect events
	if r.Method == http.MethodHead {
		return
	}
	send := func(text []byte) bool {
		_ = c.SetWriteDeadline(a.o.Now().Add(eventPatience))
		if _, err := w.Write(text); err != nil {
			return false
		}
		return c.Flush() == nil
	}
	if !send([]byte("retry: 2000\n\n")) {
		return
	}
	for {
		select {
		case e, ok := <-events:
			if !ok || !send(frame(e.Name, e.Data)) {
				return
			}
		case <-a.streams.over:
			return
		case <-r.Context().Done():
			return
		case <-life.C:
			return
		}
	}
}

// frame writes an event. JSON has no line ends, so one line is enough.
func frame(name string, data []byte) []byte {
	b := append([]byte("event: "), name...)
	b = append(append(b, "\ndata: "...), data...)
	return append(b, '\n', '\n')
}
