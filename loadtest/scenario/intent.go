package scenario

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Line is the content of one order.
type Line struct {
	SKU             string
	Quantity        int64
	Hundredths      int64  // the amount
	ExternalOrderNo string // empty when absent
}

// Intent is what one customer wants, and how it reaches the server.
type Intent struct {
	Number    uint64
	Behaviour *Behaviour
	User      int // index into the users of the run
	Key       string
	Lines     []Line          // what is wanted
	Other     []Line          // the other content, when the behaviour has one
	Copies    []time.Duration // when each copy is due after the intent; the first is 0
	HangUp    time.Duration   // the first attempt hangs up then; 0: it does not
	jitter    uint64
}

// Source makes the intents of one run. Safe for concurrent use.
type Source struct {
	scenario *Scenario
	run      string
	seed     uint64
	users    int
	shares   float64
}

// NewSource prepares a run. Its name goes into every key, so that two runs with
// one seed do not meet in the database; the number of users is that of the run.
func NewSource(s *Scenario, run string, seed uint64, users int) *Source {
	src := &Source{scenario: s, run: run, seed: seed, users: users}
	for i := range s.Behaviours {
		src.shares += s.Behaviours[i].Share
	}
	return src
}

// KeyPrefix begins every key of a run.
func KeyPrefix(run string) string { return "lt-" + run + "-" }

// NumberPrefix begins every business number of a run.
func NumberPrefix(run string) string { return run + "-" }

// Intent returns the n-th intent: always the same one for the same n.
func (s *Source) Intent(n uint64) *Intent {
	r := rand.New(rand.NewPCG(s.seed, n))
	b := s.behaviour(r)
	it := &Intent{Number: n, Behaviour: b, User: s.user(r), jitter: r.Uint64()}
	it.Key = fmt.Sprintf("%s%d-%08x", KeyPrefix(s.run), n, r.Uint32())
	it.Lines = s.lines(r, b, n)
	copies := b.Copies.pick(r)
	it.Copies = make([]time.Duration, copies)
	for i := 1; i < copies; i++ {
		if b.Copies.Within > 0 {
			it.Copies[i] = time.Duration(r.Int64N(int64(b.Copies.Within)))
		}
	}
	if b.OtherBody != "" {
		it.Other = append([]Line(nil), it.Lines...)
		it.Other[0].Hundredths++ // one cent is another content
	}
	if r.Float64() < b.HangUp.Share {
		it.HangUp = 1 + time.Duration(r.Int64N(int64(b.HangUp.After)))
	}
	return it
}

// Backoff is the waiting time before the given attempt (from 2): full jitter.
func (it *Intent) Backoff(copyNo, attempt int) time.Duration {
	limit := it.Behaviour.Retry.Base
	for i := 2; i < attempt && limit < it.Behaviour.Retry.Cap; i++ {
		limit *= 2
	}
	limit = min(limit, it.Behaviour.Retry.Cap)
	if limit <= 0 {
		return 0
	}
	r := rand.New(rand.NewPCG(it.jitter, uint64(copyNo)<<32|uint64(attempt))) //nolint:gosec // G115, G404: reproducible on purpose
	return time.Duration(r.Int64N(int64(limit)))
}

func (s *Source) behaviour(r *rand.Rand) *Behaviour {
	x := r.Float64() * s.shares
	for i := range s.scenario.Behaviours {
		b := &s.scenario.Behaviours[i]
		if x < b.Share {
			return b
		}
		x -= b.Share
	}
	return &s.scenario.Behaviours[len(s.scenario.Behaviours)-1]
}

func (s *Source) user(r *rand.Rand) int {
	if z := s.scenario.Users.Zipf; z > 1 && s.users > 1 {
		return int(rand.NewZipf(r, z, 1, uint64(s.users-1)).Uint64()) //nolint:gosec // G115: below the number of users
	}
	return r.IntN(s.users)
}

var menu = [...]string{"potsticker", "dumpling", "bao", "wonton", "noodles", "tea", "rice", "soup"}

func (s *Source) lines(r *rand.Rand, b *Behaviour, n uint64) []Line {
	rows := 1
	if b.Endpoint == Batch {
		rows = b.Rows.pick(r)
	}
	lines := make([]Line, rows)
	for i := range lines {
		lines[i] = Line{
			SKU:        menu[r.IntN(len(menu))],
			Quantity:   1 + r.Int64N(5),
			Hundredths: 100 + r.Int64N(9900),
		}
		// A batch needs business numbers; of single orders every other one has one.
		if b.Endpoint == Batch || r.IntN(2) == 0 {
			lines[i].ExternalOrderNo = fmt.Sprintf("%s%d-%d", NumberPrefix(s.run), n, i)
		}
	}
	return lines
}

func (r Range) pick(rng *rand.Rand) int { return r.Min + rng.IntN(r.Max-r.Min+1) }
