package order_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func TestAReceiptOfThisServerIsReplayedWithoutTheLedger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, layer := range []order.Layer{order.LayerRedis, order.LayerProcess} {
			s := newStubs(t)
			r := s.receipt(order.Succeeded)
			s.filter.admissions = []order.Admission{{Advice: order.Seen, Layer: layer, Receipt: r}}
			a, err := s.intake.Submit(t.Context(), s.command, 0)
			require.NoError(t, err)
			require.Equal(t, order.Answer{Kind: order.Replayed, Layer: layer, Receipt: r, Age: 3 * time.Second}, a)
			require.Zero(t, s.ledger.calls)
			require.Equal(t, order.End{Answer: a, Mark: order.MarkLeft, Receipt: r}, s.end())
			require.Empty(t, s.observer.Anomalies())
		}
	})
}

func TestAReceiptOfAnotherContentIsReused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStubs(t)
		s.filter.admissions = []order.Admission{{Advice: order.Seen, Layer: order.LayerRedis, Receipt: s.foreign()}}
		a, err := s.intake.Submit(t.Context(), s.command, 0)
		require.NoError(t, err)
		require.Equal(t, order.Answer{Kind: order.Reused, Layer: order.LayerRedis, Age: 3 * time.Second}, a)
		require.Zero(t, s.ledger.calls)
		require.Equal(t, order.MarkLeft, s.end().Mark)
	})
}

// TestADoubtfulReceiptIsConfirmedFirst: a receipt of another server, of an
// unknown one, or any receipt when the setting says so.
func TestADoubtfulReceiptIsConfirmedFirst(t *testing.T) {
	t.Parallel()
	for name, doubt := range map[string]func(s *stubs, r *order.Receipt){
		"of another server":              func(_ *stubs, r *order.Receipt) { r.Server = elsewhere },
		"of an unknown server":           func(_ *stubs, r *order.Receipt) { r.Server = 0 },
		"while no server has answered":   func(s *stubs, _ *order.Receipt) { s.ledger.identity = 0 },
		"unknown on both sides":          func(s *stubs, r *order.Receipt) { s.ledger.identity, r.Server = 0, 0 },
		"because it is asked for":        func(s *stubs, _ *order.Receipt) { s.tuning.ConfirmReceipts = true },
		"of a refusal of another server": func(_ *stubs, r *order.Receipt) { r.State, r.Server = order.Failed, elsewhere },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				doubted := func() *stubs {
					s := newStubs(t)
					r := s.receipt(order.Succeeded)
					doubt(s, &r)
					s.filter.admissions = []order.Admission{{Advice: order.Seen, Layer: order.LayerRedis, Receipt: r}}
					return s
				}
				receiptConfirmed(t, doubted())
				receiptOfOtherContentFound(t, doubted())
				receiptCannotBeConfirmed(t, doubted())
				receiptLost(t, doubted())
			})
		})
	}
}

func receiptConfirmed(t *testing.T, s *stubs) {
	truth := s.receipt(order.Succeeded)
	truth.FirstSeen = time.Now().Add(-time.Minute)
	truth.Response.Body = []byte(`{"n":2}`)
	s.ledger.find = func(context.Context) (order.Receipt, error) { return truth, nil }
	a, err := s.intake.Submit(t.Context(), s.command, 0)
	require.NoError(t, err)
	require.Equal(t, order.Answer{Kind: order.Replayed, Layer: order.LayerLedger, Receipt: truth, Age: time.Minute}, a)
	require.Equal(t, order.End{Answer: a, Mark: order.MarkReceipt, Receipt: truth}, s.end(), "the filter is re-armed with the truth")
	require.Zero(t, s.ledger.calls.Decide)
	require.Equal(t, 1, s.ledger.calls.Find)
}

func receiptOfOtherContentFound(t *testing.T, s *stubs) {
	s.ledger.find = func(context.Context) (order.Receipt, error) { return s.foreign(), nil }
	a, err := s.intake.Submit(t.Context(), s.command, 0)
	require.NoError(t, err)
	require.Equal(t, order.Reused, a.Kind)
	require.Zero(t, a.Receipt)
	require.Equal(t, s.foreign(), s.end().Receipt)
	require.Equal(t, order.MarkReceipt, s.end().Mark)
}

func receiptCannotBeConfirmed(t *testing.T, s *stubs) {
	s.ledger.find = func(context.Context) (order.Receipt, error) {
		// Of the read nothing is committed; of the order that says nothing.
		return order.Receipt{}, order.Undecided(order.OutcomeNotCommitted, order.ErrUnavailable)
	}
	a, err := s.intake.Submit(t.Context(), s.command, 0)
	require.ErrorIs(t, err, order.ErrUnavailable)
	requireOutcome(t, err, order.OutcomeUnknown)
	require.Zero(t, a)
	require.Equal(t, order.End{Err: err}, s.end())
	require.Zero(t, s.ledger.calls.Decide)
}

func receiptLost(t *testing.T, s *stubs) {
	a, err := s.intake.Submit(t.Context(), s.command, 0)
	require.NoError(t, err)
	require.Equal(t, order.Created, a.Kind)
	require.Equal(t, order.MarkReceipt, s.end().Mark)
	require.Equal(t, []order.Anomaly{order.ReceiptLost}, s.observer.Anomalies())
}

// TestARefusalThatTheLedgerMayHaveForgottenIsNotReplayedUnasked: its key has made an
// order since, and a client that is told of the refusal takes another.
func TestARefusalThatTheLedgerMayHaveForgottenIsNotReplayedUnasked(t *testing.T) {
	t.Parallel()
	const kept = 30 * 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		seen := func(state order.State, age time.Duration, digest order.Digest) *stubs {
			s := newStubs(t)
			s.tuning.RefusalsKept = kept
			r := s.receipt(state)
			r.FirstSeen = time.Now().Add(-age)
			if digest != (order.Digest{}) {
				r.Digest = digest
			}
			s.filter.admissions = []order.Admission{{Advice: order.Seen, Layer: order.LayerProcess, Receipt: r}}
			return s
		}
		for _, digest := range []order.Digest{{}, {0xf0}} {
			s := seen(order.Failed, kept-30*time.Minute, digest)
			a, err := s.intake.Submit(t.Context(), s.command, 0)
			require.NoError(t, err)
			require.Equal(t, order.Created, a.Kind)
			require.Empty(t, s.observer.Anomalies(), "that it is forgotten is in order")
		}
		for state, age := range map[order.State]time.Duration{order.Failed: kept - 2*time.Hour, order.Succeeded: 2 * kept} {
			s := seen(state, age, order.Digest{})
			a, err := s.intake.Submit(t.Context(), s.command, 0)
			require.NoError(t, err)
			require.Equal(t, order.Replayed, a.Kind)
			require.Zero(t, s.ledger.calls)
		}
	})
}

// TestWhoJoinedDoesNotInheritThatTheOwnerLeft: the owner's client hangs up while
// its receipt is being confirmed; those who joined are still there.
func TestWhoJoinedDoesNotInheritThatTheOwnerLeft(t *testing.T) {
	t.Parallel()
	s := newStubs(t)
	r := s.receipt(order.Succeeded)
	r.Server = elsewhere
	s.filter.admissions = []order.Admission{{Advice: order.Seen, Receipt: r}}
	ctx, cancel := context.WithCancel(t.Context())
	s.ledger.find = func(fctx context.Context) (order.Receipt, error) {
		cancel()
		<-fctx.Done()
		return order.Receipt{}, fctx.Err()
	}
	_, err := s.intake.Submit(ctx, s.command, 0)
	require.ErrorIs(t, err, context.Canceled)
	requireOutcome(t, err, order.OutcomeUnknown)
	require.Error(t, s.end().Err)
	require.NotErrorIs(t, s.end().Err, context.Canceled)
}
