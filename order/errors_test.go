package order_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func TestOnlyAProvenOutcomeIsTold(t *testing.T) {
	t.Parallel()
	err := order.Undecided(order.OutcomeNotCommitted, order.ErrOverloaded)
	require.ErrorIs(t, err, order.ErrOverloaded)
	require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(fmt.Errorf("submit: %w", err)))
	require.Equal(t, order.OutcomeUnknown, order.OutcomeOf(order.Undecided(order.OutcomeUnknown, err)), "the outermost word counts")
	require.Equal(t, order.OutcomeUnknown, order.OutcomeOf(errors.New("boom")))
	require.Equal(t, order.OutcomeUnknown, order.OutcomeOf(nil))
}

func TestInvalidErrorsNameEveryFault(t *testing.T) {
	t.Parallel()
	err := &order.InvalidError{Faults: []order.FieldFault{{Path: "sku", Reason: "is required"}, {Reason: "is not JSON"}}}
	require.EqualError(t, err, "the request is invalid: sku is required; is not JSON")
}
