package store

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

// refusedCommits are errors that a COMMIT was answered with. The last is one of
// which nothing is known.
func refusedCommits() map[string]faultproxy.AnswerError {
	return map[string]faultproxy.AnswerError{
		"ErrorDuringCommit": {Code: 1180, Message: "Got error 28 during COMMIT"},
		"LogDiskFailed":     {Code: 1598, Message: "Binary logging not possible. Message: An error occurred during flush stage of the commit."},
		"NobodyKnows":       {Code: 9999, Message: "?"},
	}
}

// What a COMMIT is refused with says nothing: the transaction is run again, and
// that settles it.
func TestWhateverCommitIsRefusedWithIsResolved(t *testing.T) {
	t.Parallel()
	for name, refusal := range refusedCommits() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, dsn string) {
				h, proxy := behindProxy(t, dsn, patient)
				id := placed(t, h, "bob", potsticker(19_90))
				other := placed(t, h, "cid", potsticker(19_90))
				for what, do := range map[string]func(ctx context.Context) error{
					"decide": func(context.Context) error {
						return decideThenCheck(t, h, ample, command(t, "ann", "k", potsticker(1_00)), func() {})
					},
					"apply": func(ctx context.Context) error {
						result, err := h.Apply(ctx, paid(id, "m", "r", 19_90))
						return errors.Join(err, was(order.Applied, result.Effect))
					},
					"cancel": func(ctx context.Context) error {
						result, err := h.Cancel(ctx, "cid", other)
						return errors.Join(err, was(order.Applied, result.Effect))
					},
					"accept": func(ctx context.Context) error {
						decision, err := h.Accept(ctx, batchOf(t, "ann", "later", 2, 1_00))
						return errors.Join(err, was(order.InProgress, decision.Kind))
					},
					"setting": func(ctx context.Context) error {
						_, err := h.ChangeSetting(ctx, 0, SettingChange{Name: "log.level", By: "ann"})
						return err
					},
				} {
					proxy.OnQuery(first("COMMIT", refusal))
					asked := proxy.Seen("COMMIT")
					require.NoError(t, do(t.Context()), what)
					require.Greater(t, proxy.Seen("COMMIT"), asked+1, "%s: it was refused, and asked again", what)
				}
			})
		})
	}
}

// A COMMIT that is refused each time has not been refused for good: an order
// that is not answered is unknown, a payment event is not the message's fault.
func TestACommitThatIsRefusedEachTimeIsAnOutage(t *testing.T) {
	t.Parallel()
	for name, refusal := range refusedCommits() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, dsn string) {
				h, proxy := behindProxy(t, dsn, patient)
				id := placed(t, h, "bob", potsticker(19_90))
				proxy.OnQuery(func(q string) faultproxy.Action {
					if q == "COMMIT" {
						return refusal
					}
					return faultproxy.Pass
				})
				err := decideThenCheck(t, h, reached, command(t, "ann", "k", potsticker(1_00)), func() {})
				require.ErrorIs(t, err, order.ErrUnavailable)
				require.Equal(t, order.OutcomeUnknown, order.OutcomeOf(err))
				_, err = h.Apply(t.Context(), paid(id, "m", "r", 19_90))
				require.ErrorIs(t, err, order.ErrUnavailable)
				require.NotErrorIs(t, err, order.ErrInternal)
			})
		})
	}
}

// was says what else something was than it should have been.
func was[T comparable](want, got T) error {
	if want == got {
		return nil
	}
	return errors.New("another result than the one that was due")
}
