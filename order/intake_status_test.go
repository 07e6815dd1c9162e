package order_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func TestStatusTellsWhatTheLedgerKnows(t *testing.T) {
	t.Parallel()
	young := order.Glimpse{Layer: order.LayerRedis, Running: true, Age: 2 * time.Second}
	local := order.Glimpse{Layer: order.LayerProcess, Running: true}
	old := order.Glimpse{Layer: order.LayerRedis, Running: true, Age: 2*time.Second + 1}
	receipt := order.Glimpse{Layer: order.LayerRedis}

	type word struct {
		state order.State // zero: the error
		err   error
	}
	missing, away := word{err: order.ErrNotFound}, word{err: order.ErrUnavailable}
	for _, tc := range []struct {
		name          string
		peek          []order.Glimpse
		find, confirm word
		want          word
	}{
		{"succeeded", nil, word{state: order.Succeeded}, away, word{state: order.Succeeded}},
		{"failed", nil, word{state: order.Failed}, away, word{state: order.Failed}},
		{"accepted for later", nil, word{state: order.Processing}, away, word{state: order.Processing}},
		{"done while its mark is still there", []order.Glimpse{young}, word{state: order.Succeeded}, away, word{state: order.Succeeded}},
		{"done with an old mark", []order.Glimpse{old}, word{state: order.Succeeded}, away, word{state: order.Succeeded}},
		{"running elsewhere", []order.Glimpse{young}, missing, away, word{state: order.Processing}},
		{"running here", []order.Glimpse{local}, missing, away, word{state: order.Processing}},
		{"running here on an old mark", []order.Glimpse{old, local}, missing, away, word{state: order.Processing}},
		{"old mark of a slow owner", []order.Glimpse{old}, missing, word{state: order.Succeeded}, word{state: order.Succeeded}},
		{"old mark of a dead owner", []order.Glimpse{old}, missing, missing, missing},
		{"old mark and no ledger", []order.Glimpse{old}, missing, away, away},
		{"never used", nil, missing, missing, missing},
		{"a receipt alone proves nothing", []order.Glimpse{receipt}, missing, missing, missing},
		{"no ledger", nil, away, away, away},
		{"no ledger and a mark", []order.Glimpse{young}, away, away, away},
		{"no ledger and a receipt", []order.Glimpse{receipt}, away, away, away},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newStubs(t)
			s.filter.glimpses = tc.peek
			reading := func(w word) func(ctx context.Context) (order.Receipt, error) {
				return func(ctx context.Context) (order.Receipt, error) {
					_, bounded := ctx.Deadline()
					require.True(t, bounded, "reads have a deadline")
					if w.err != nil {
						return order.Receipt{}, w.err
					}
					return s.receipt(w.state), nil
				}
			}
			s.ledger.find, s.ledger.confirm = reading(tc.find), reading(tc.confirm)

			got, err := s.intake.Status(t.Context(), "alice", "k")

			require.ErrorIs(t, err, tc.want.err)
			require.Equal(t, tc.want.state, got.State)
			switch tc.want.state {
			case order.Succeeded, order.Failed:
				require.Equal(t, s.command.Digest, got.Receipt.Digest)
				require.Zero(t, got.RetryAfter)
			case order.Processing:
				require.Zero(t, got.Receipt)
				require.Equal(t, time.Second, got.RetryAfter)
			default:
				require.Zero(t, got)
			}
			require.Zero(t, s.ledger.calls.Decide)
			require.Zero(t, s.filter.admitted, "looking changes nothing")
		})
	}
}

// TestStatusOfAnAttemptThatNoFilterKnows: Redis is away and another gateway is
// in its transaction. "Never used" would send the client off with a new key.
func TestStatusOfAnAttemptThatNoFilterKnows(t *testing.T) {
	t.Parallel()
	s := newStubs(t)
	s.ledger.confirm = func(context.Context) (order.Receipt, error) { return s.receipt(order.Succeeded), nil }
	got, err := s.intake.Status(t.Context(), "alice", "k")
	require.NoError(t, err)
	require.Equal(t, order.Succeeded, got.State)
}
