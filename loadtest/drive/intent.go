package drive

import (
	"sync"
	"time"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/scenario"
)

// longestRetryAfter bounds what a server can make the harness wait.
const longestRetryAfter = 30 * time.Second

// run carries one intent to its end. The room for its first request is taken.
func (d *Driver) run(it *scenario.Intent, due time.Duration, held bool) {
	who := d.Users[it.User]
	s := &session{d: d, it: it, who: who, log: d.Log.Open(it, who.User)}
	b := it.Behaviour

	var copies sync.WaitGroup
	for i, offset := range it.Copies[1:] {
		copies.Go(func() { s.submit(history.Submit, it.Lines, i+1, due+offset, false) })
	}
	if b.OtherBody == "at_once" {
		copies.Go(func() { s.submit(history.Other, it.Other, len(it.Copies), due, false) })
	}
	last := s.submit(history.Submit, it.Lines, 0, due, held)
	copies.Wait()

	if b.OtherBody == "after" {
		s.submit(history.Other, it.Other, len(it.Copies), d.now(), false)
	}
	for range b.Repeat.Times {
		next := d.now() + b.Repeat.After
		if !wait(d.quit, b.Repeat.After) {
			return
		}
		s.submit(history.Submit, it.Lines, 0, next, false)
	}
	if b.Status {
		s.send(history.Status, statusRequest(who, it), d.now(), 0, false)
	}
	if b.Callback != nil {
		s.pay(last)
	}
}

func (d *Driver) now() time.Duration { return time.Since(d.start) }

// session is the work on one intent.
type session struct {
	d   *Driver
	it  *scenario.Intent
	who Identity
	log *history.Case
}

// submit sends a request until it is decided or the customer gives up. It
// returns the last answer, nil when the request could not be made.
func (s *session) submit(op history.Op, lines []scenario.Line, copyNo int, due time.Duration, held bool) *answer {
	b := s.it.Behaviour
	if !held && !wait(s.d.quit, due-s.d.now()) {
		return nil
	}
	request := orderRequest(s.who, s.it, lines)
	for attempt := 1; ; attempt++ {
		var hangUp time.Duration
		if attempt == 1 && held {
			hangUp = s.it.HangUp
		}
		a := s.send(op, request, due, hangUp, held)
		held = false
		if a == nil || !worthAnother(a.Outcome) || attempt >= b.Retry.Attempts {
			return a
		}
		pause := max(s.it.Backoff(copyNo, attempt+1), min(a.retryAfter, longestRetryAfter))
		due = s.d.now() + pause
		if !wait(s.d.quit, pause) {
			return a
		}
	}
}

// worthAnother is what a careful client asks again after, with the same key.
func worthAnother(o measure.Outcome) bool {
	switch o {
	case measure.InProgress, measure.Limited, measure.Unavailable, measure.HungUp, measure.Timeout, measure.Transport:
		return true
	default:
		return false
	}
}

// pay delivers the payment of the order, as often as the scenario says.
func (s *session) pay(a *answer) {
	if a == nil || (a.Outcome != measure.Created && a.Outcome != measure.Replayed) {
		return
	}
	id := orderID(a.Body)
	if id == "" {
		return
	}
	var wg sync.WaitGroup
	for range s.it.Behaviour.Callback.Copies {
		wg.Go(func() {
			due := s.d.now()
			for range s.it.Behaviour.Retry.Attempts {
				a := s.send(history.Callback, s.d.Webhook.request(s.it, id, time.Now()), due, 0, false)
				if a == nil || a.Outcome == measure.Accepted {
					return
				}
				pause := max(min(a.retryAfter, longestRetryAfter), s.it.Behaviour.Retry.Base)
				due = s.d.now() + pause
				if !wait(s.d.quit, pause) {
					return
				}
			}
		})
	}
	wg.Wait()
}
