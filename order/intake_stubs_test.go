package order_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
)

// here and elsewhere are the identities of two database servers.
const (
	here      order.ServerID = 0x11
	elsewhere order.ServerID = 0x22
)

var defaultTuning = order.Tuning{Budget: 6 * time.Second, InProgressGrace: 2 * time.Second, MaxWait: 10 * time.Second}

// stubLedger answers as it was told to.
type stubLedger struct {
	decide   func(ctx context.Context, c *order.Command) (order.Decision, error)
	find     func(ctx context.Context) (order.Receipt, error)
	confirm  func(ctx context.Context) (order.Receipt, error)
	identity order.ServerID

	mu    sync.Mutex
	calls ordertest.Calls
}

func (s *stubLedger) Decide(ctx context.Context, c *order.Command) (order.Decision, error) {
	s.mu.Lock()
	s.calls.Decide++
	s.mu.Unlock()
	return s.decide(ctx, c)
}

func (s *stubLedger) Find(ctx context.Context, _ string, _ order.Key) (order.Receipt, error) {
	s.mu.Lock()
	s.calls.Find++
	s.mu.Unlock()
	return s.find(ctx)
}

func (s *stubLedger) Confirm(ctx context.Context, _ string, _ order.Key) (order.Receipt, error) {
	s.mu.Lock()
	s.calls.Confirm++
	s.mu.Unlock()
	return s.confirm(ctx)
}

func (s *stubLedger) Identity() order.ServerID { return s.identity }

// stubFilter gives the admissions in turn, the last one again and again, each
// but a joined one with a ticket that records its end.
type stubFilter struct {
	mu         sync.Mutex
	admissions []order.Admission
	admitted   int
	ends       []order.End
	glimpses   []order.Glimpse
}

func (s *stubFilter) Admit(context.Context, order.Attempt) order.Admission {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.admissions[min(s.admitted, len(s.admissions)-1)]
	s.admitted++
	if a.Advice != order.Joined {
		a.Ticket = &stubTicket{filter: s}
	}
	return a
}

func (s *stubFilter) Peek(context.Context, string, order.Key) []order.Glimpse { return s.glimpses }

type stubTicket struct{ filter *stubFilter }

func (s *stubTicket) Finish(_ context.Context, end order.End) {
	s.filter.mu.Lock()
	defer s.filter.mu.Unlock()
	s.filter.ends = append(s.filter.ends, end)
}

// endedFlight is over.
type endedFlight struct {
	answer order.Answer
	err    error
}

func (f endedFlight) Wait(context.Context) (order.Answer, error) { return f.answer, f.err }

// stubs is an Intake between a stub filter and a stub ledger.
type stubs struct {
	t        *testing.T
	filter   *stubFilter
	ledger   *stubLedger
	observer *ordertest.Observer
	tuning   order.Tuning
	intake   *order.Intake
	command  *order.Command
}

func newStubs(t *testing.T, admissions ...order.Admission) *stubs {
	t.Helper()
	c, err := order.NewCommand(order.CreateOrder, "alice", "k", []order.Line{goodLine()})
	require.NoError(t, err)
	s := &stubs{
		t: t, filter: &stubFilter{admissions: admissions}, ledger: &stubLedger{identity: here},
		observer: &ordertest.Observer{}, tuning: defaultTuning, command: c,
	}
	notFound := func(context.Context) (order.Receipt, error) { return order.Receipt{}, order.ErrNotFound }
	s.ledger.find, s.ledger.confirm = notFound, notFound
	s.ledger.decide = func(context.Context, *order.Command) (order.Decision, error) {
		return order.Decision{Kind: order.Created, Receipt: s.receipt(order.Succeeded), Remembered: true}, nil
	}
	s.intake = order.NewIntake(order.Options{
		Filter: s.filter, Ledger: s.ledger, Observer: s.observer, Now: time.Now,
		Tuning: func() order.Tuning { return s.tuning },
	})
	return s
}

// receipt is what the server here has committed for the command, 3 s ago.
func (s *stubs) receipt(state order.State) order.Receipt {
	return order.Receipt{
		Digest: s.command.Digest, State: state, FirstSeen: time.Now().Add(-3 * time.Second), Server: here,
		Response: order.Response{Status: 201, ContentType: "application/json", Location: "/api/orders/1", Body: []byte(`{"n":1}`)},
	}
}

// foreign is a receipt of another content.
func (s *stubs) foreign() order.Receipt {
	r := s.receipt(order.Succeeded)
	r.Digest = order.Digest{0xf0}
	r.Response.Body = []byte(`{"secret":1}`)
	return r
}

// end wants exactly one ticket to be finished, and returns how.
func (s *stubs) end() order.End {
	s.t.Helper()
	require.Len(s.t, s.filter.ends, 1)
	return s.filter.ends[0]
}

func requireOutcome(t *testing.T, err error, want order.Outcome) {
	t.Helper()
	var u *order.UndecidedError
	require.ErrorAs(t, err, &u)
	require.Equal(t, want, u.Outcome)
}
