//go:build seededbugs

package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// The mistakes of flaws_on.go are each caught by a test of this package. Not
// parallel: the switches are shared.

func TestPlainRereadIsCaught(t *testing.T) { //nolint:paralleltest // it flips a package switch
	dsn := testserver.MySQL(t).Database(t)
	require.NoError(t, Migrate(t.Context(), Options{DSN: dsn}))
	flawPlainReread = true
	defer func() { flawPlainReread = false }()
	err := lateCommit(t, dsn)
	require.ErrorContains(t, err, "not_committed")
	var u *order.UndecidedError
	require.ErrorAs(t, err, &u)
	require.Equal(t, order.OutcomeNotCommitted, u.Outcome, "it denied an order that is there")
}

func TestStatementAfterAnErrorIsCaught(t *testing.T) { //nolint:paralleltest // it flips a package switch
	dsn := testserver.MySQL(t).Database(t)
	require.NoError(t, Migrate(t.Context(), Options{DSN: dsn}))
	flawStatementAfterError = true
	defer func() { flawStatementAfterError = false }()
	require.ErrorContains(t, halfCommitted(t, dsn), "order_without_key")
}
