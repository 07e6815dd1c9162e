package drive

import (
	"time"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/wire"
)

// answer is what a session needs to know of a request.
type answer struct {
	history.Record
	retryAfter time.Duration
}

// send makes one request, measures it and keeps it. It returns nil when there
// was no room for it.
func (s *session) send(op history.Op, r *wire.Request, due, hangUp time.Duration, held bool) *answer {
	d := s.d
	if !held && d.flying.Add(1) > int64(d.MaxInFlight) {
		d.flying.Add(-1)
		d.droppedFollowUps.Add(1)
		return nil
	}
	x := d.Client.Do(d.hard, r, hangUp)
	d.flying.Add(-1)

	a := name(op, &x)
	if hangUp > 0 && a.Outcome == measure.Timeout && !x.Sent.IsZero() {
		a.Outcome = measure.HungUp // a connection was there; the customer was not
	}
	a.Op, a.Due = op, due
	a.Begun, a.Done = x.Begun.Sub(d.start), x.Done.Sub(d.start)
	sent := !x.Sent.IsZero()
	if sent {
		a.Sent = x.Sent.Sub(d.start)
	}
	s.log.Add(a.Record)
	d.Recorder.Add(s.it.Number, measure.Sample{
		Outcome:  a.Outcome,
		Response: a.Done - due,
		Service:  a.Done - a.Sent,
		Sent:     sent,
		Lag:      a.Begun - due,
	})
	return &a
}
