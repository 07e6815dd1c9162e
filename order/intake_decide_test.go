package order_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// ledgerWord is one thing that the ledger may say, and what must follow from it
// whatever the filter had advised.
type ledgerWord struct {
	name     string
	decision func(s *stubs) order.Decision
	err      error

	kind    order.Kind // zero: an error
	outcome order.Outcome
	mark    order.Mark
	known   bool // the ledger knew the key: a filter that said otherwise has missed it
}

var ledgerWords = []ledgerWord{
	{
		name: "created",
		decision: func(s *stubs) order.Decision {
			return order.Decision{Kind: order.Created, Receipt: s.receipt(order.Succeeded), Remembered: true}
		},
		kind: order.Created, mark: order.MarkReceipt,
	},
	{
		name: "rejected and remembered",
		decision: func(s *stubs) order.Decision {
			return order.Decision{Kind: order.Rejected, Receipt: s.receipt(order.Failed), Remembered: true}
		},
		kind: order.Rejected, mark: order.MarkReceipt,
	},
	{
		name: "rejected and forgotten",
		decision: func(s *stubs) order.Decision {
			return order.Decision{Kind: order.Rejected, Receipt: s.receipt(order.Failed)}
		},
		kind: order.Rejected, mark: order.MarkReleased,
	},
	{
		name: "replayed",
		decision: func(s *stubs) order.Decision {
			return order.Decision{Kind: order.Replayed, Receipt: s.receipt(order.Succeeded), Remembered: true}
		},
		kind: order.Replayed, mark: order.MarkReceipt, known: true,
	},
	{
		name: "reused",
		decision: func(s *stubs) order.Decision {
			return order.Decision{Kind: order.Reused, Receipt: s.foreign()}
		},
		kind: order.Reused, mark: order.MarkReceipt, known: true,
	},
	{
		name: "replayed with another content",
		decision: func(s *stubs) order.Decision {
			return order.Decision{Kind: order.Replayed, Receipt: s.foreign(), Remembered: true}
		},
		kind: order.Reused, mark: order.MarkReceipt, known: true,
	},
	{
		name: "accepted and to be carried out",
		decision: func(s *stubs) order.Decision {
			return order.Decision{Kind: order.InProgress, Receipt: s.receipt(order.Processing), Remembered: true}
		},
		kind: order.InProgress, mark: order.MarkReleased,
	},
	{
		name: "not committed", err: order.Undecided(order.OutcomeNotCommitted, order.ErrOverloaded),
		outcome: order.OutcomeNotCommitted, mark: order.MarkReleased,
	},
	{
		name: "unknown", err: order.Undecided(order.OutcomeUnknown, order.ErrUnavailable),
		outcome: order.OutcomeUnknown, mark: order.MarkLeft,
	},
	{
		name: "an error that says nothing", err: errors.New("boom"),
		outcome: order.OutcomeUnknown, mark: order.MarkLeft,
	},
}

// filterWord is one thing that a filter may say that leads to the ledger.
type filterWord struct {
	name      string
	admission func(s *stubs) order.Admission
	find      error // what the ledger says when the receipt is to be confirmed
	noticed   []order.Anomaly
}

var filterWords = []filterWord{
	{name: "bypassed", admission: func(*stubs) order.Admission { return order.Admission{Advice: order.Bypassed} }},
	{name: "ours", admission: func(*stubs) order.Admission {
		return order.Admission{Advice: order.Ours, Layer: order.LayerRedis}
	}},
	{name: "running beyond its grace", admission: func(s *stubs) order.Admission {
		return order.Admission{Advice: order.Running, Layer: order.LayerRedis, Digest: s.command.Digest, Age: 2*time.Second + 1}
	}, noticed: []order.Anomaly{order.StaleMark}},
	{name: "another content running beyond its grace", admission: func(*stubs) order.Admission {
		return order.Admission{Advice: order.Running, Layer: order.LayerRedis, Digest: order.Digest{1}, Age: time.Hour}
	}, noticed: []order.Anomaly{order.StaleMark}},
	{name: "a receipt that is lost", admission: func(s *stubs) order.Admission {
		r := s.receipt(order.Succeeded)
		r.Server = elsewhere
		return order.Admission{Advice: order.Seen, Layer: order.LayerRedis, Receipt: r}
	}, find: order.ErrNotFound, noticed: []order.Anomaly{order.ReceiptLost}},
}

func TestTheLedgerHasTheLastWord(t *testing.T) {
	t.Parallel()
	for _, fw := range filterWords {
		for _, lw := range ledgerWords {
			t.Run(fw.name+", then "+lw.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { filterThenLedger(t, fw, lw) })
			})
		}
	}
}

func filterThenLedger(t *testing.T, fw filterWord, lw ledgerWord) {
	s := newStubs(t)
	s.filter.admissions = []order.Admission{fw.admission(s)}
	s.ledger.find = func(context.Context) (order.Receipt, error) { return order.Receipt{}, fw.find }
	var said order.Decision
	s.ledger.decide = func(ctx context.Context, _ *order.Command) (order.Decision, error) {
		_, bounded := ctx.Deadline()
		require.True(t, bounded, "the ledger gets a deadline")
		if lw.decision != nil {
			said = lw.decision(s)
		}
		return said, lw.err
	}

	a, err := s.intake.Submit(t.Context(), s.command, 0)

	end := s.end()
	require.Equal(t, lw.mark, end.Mark)
	require.Equal(t, err, end.Err, "those who joined get the same error")
	if lw.kind == 0 {
		require.ErrorIs(t, err, lw.err)
		require.Equal(t, lw.outcome, order.OutcomeOf(err))
		require.Zero(t, a)
	} else {
		require.NoError(t, err)
		require.Equal(t, lw.kind.String(), a.Kind.String())
		require.Equal(t, order.LayerLedger, a.Layer)
		require.Equal(t, a, end.Answer, "those who joined get the same answer")
	}
	switch lw.kind {
	case order.Created, order.Rejected:
		require.Equal(t, said.Receipt, a.Receipt)
		require.Zero(t, a.Age)
	case order.Replayed:
		require.Equal(t, said.Receipt, a.Receipt)
		require.Equal(t, 3*time.Second, a.Age)
	case order.Reused:
		require.Zero(t, a.Receipt, "nothing of the other content gets out")
		require.Equal(t, 3*time.Second, a.Age)
	case order.InProgress:
		require.Zero(t, a.Receipt, "there is no answer yet")
		require.Equal(t, 3*time.Second, a.Age)
		require.Equal(t, time.Second, a.RetryAfter)
	}
	if lw.mark == order.MarkReceipt {
		require.Equal(t, said.Receipt, end.Receipt)
	} else {
		require.Zero(t, end.Receipt)
	}

	noticed := append([]order.Anomaly(nil), fw.noticed...)
	if fw.name == "ours" && lw.known {
		noticed = append(noticed, order.FilterMissed)
	}
	require.Equal(t, noticed, s.observer.Anomalies())
	if fw.name == "ours" && lw.known {
		require.Equal(t, []time.Duration{3 * time.Second}, s.observer.Ages(), "how old the record is")
	}
	require.Equal(t, 1, s.ledger.calls.Decide)

	seen := s.observer.Decisions()
	require.Len(t, seen, 1)
	require.Equal(t, a, seen[0].Answer)
	require.Equal(t, err, seen[0].Err)
}

func TestUnprotectedOrdersAreNoneOfTheFiltersBusiness(t *testing.T) {
	t.Parallel()
	s := newStubs(t)
	c, err := order.NewCommand(order.CreateOrder, "alice", "", []order.Line{goodLine()})
	require.NoError(t, err)
	for range 2 {
		a, err := s.intake.Submit(t.Context(), c, time.Hour)
		require.NoError(t, err)
		require.Equal(t, order.Created, a.Kind)
	}
	require.Equal(t, 2, s.ledger.calls.Decide)
	require.Zero(t, s.filter.admitted)
}

func TestACallerWhoLeftBeforeTheLedgerCommitsNothing(t *testing.T) {
	t.Parallel()
	for _, advice := range []order.Advice{order.Ours, order.Bypassed} {
		s := newStubs(t, order.Admission{Advice: advice})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.intake.Submit(ctx, s.command, 0)
		require.ErrorIs(t, err, context.Canceled)
		requireOutcome(t, err, order.OutcomeNotCommitted)
		require.Zero(t, s.ledger.calls.Decide)
		require.Equal(t, order.MarkReleased, s.end().Mark)
		require.Error(t, s.end().Err)
		require.NotErrorIs(t, s.end().Err, context.Canceled, "it is not those who joined that left")
	}
}

func TestACallerWhoLeavesLaterStopsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStubs(t, order.Admission{Advice: order.Ours})
		ctx, cancel := context.WithCancel(t.Context())
		inner := s.ledger.decide
		s.ledger.decide = func(dctx context.Context, c *order.Command) (order.Decision, error) {
			cancel()
			require.NoError(t, dctx.Err())
			deadline, _ := dctx.Deadline()
			require.Equal(t, defaultTuning.Budget, time.Until(deadline))
			return inner(dctx, c)
		}
		a, err := s.intake.Submit(ctx, s.command, 0)
		require.NoError(t, err)
		require.Equal(t, order.Created, a.Kind)
		require.Equal(t, order.MarkReceipt, s.end().Mark)
	})
}

func TestSettingsAreReadOncePerRequest(t *testing.T) {
	t.Parallel()
	reads := 0
	s := newStubs(t, order.Admission{Advice: order.Ours})
	intake := order.NewIntake(order.Options{
		Filter: s.filter, Ledger: s.ledger, Observer: s.observer, Now: time.Now,
		Tuning: func() order.Tuning { reads++; return defaultTuning },
	})
	_, err := intake.Submit(t.Context(), s.command, 0)
	require.NoError(t, err)
	require.Equal(t, 1, reads)
}
