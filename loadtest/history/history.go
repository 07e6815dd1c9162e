package history

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/scenario"
)

// Op is what was asked.
type Op uint8

// The operations.
const (
	Submit   Op = iota // the intent's content
	Other              // the same key with the other content
	Status             // what became of the request
	Callback           // a payment callback
)

// Proof is what an answer proves about its own attempt.
type Proof uint8

// The proofs.
const (
	Unknown   Proof = iota // it may have had an effect, now or later
	NoEffect               // the server says that it made nothing
	NeverSent              // it never left this machine whole
	Decided                // the answer is the decision: created, replayed or refused
)

// Record is one request. Times are since the start of the run.
type Record struct {
	Op       Op
	Outcome  measure.Outcome
	Proof    Proof
	HTTP     int // status; 0 without an answer
	Due      time.Duration
	Begun    time.Duration
	Sent     time.Duration // zero when it was never sent
	Done     time.Duration
	Body     []byte // of decisions, callbacks and what was unexpected; equal bodies share memory
	State    string // of a status answer: in_progress, succeeded, failed; "" for not found
	Location string // of a success
	Replayed bool   // a refusal that says that it is the first answer again
}

// Case is everything about one key of one user.
type Case struct {
	Intent *scenario.Intent
	User   string

	mu      sync.Mutex
	records []Record
}

// Add appends a finished request.
func (c *Case) Add(r Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.records {
		if bytes.Equal(c.records[i].Body, r.Body) {
			r.Body = c.records[i].Body
			break
		}
	}
	c.records = append(c.records, r)
}

// Records returns the finished requests in the order in which they finished.
func (c *Case) Records() []Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clip(c.records)
}

// Log is the history of a run.
type Log struct {
	mu    sync.Mutex
	cases []*Case
}

// Open begins a case.
func (l *Log) Open(it *scenario.Intent, user string) *Case {
	c := &Case{Intent: it, User: user}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cases = append(l.cases, c)
	return c
}

// Cases returns all cases so far.
func (l *Log) Cases() []*Case {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.cases)
}
