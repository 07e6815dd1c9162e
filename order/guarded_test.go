package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func TestWhatSendingACommandAgainCannotDouble(t *testing.T) {
	t.Parallel()
	bare := order.Line{SKU: "potsticker", Quantity: 1, Amount: 100}
	numbered := bare
	numbered.ExternalOrderNo = "B-1"
	for name, c := range map[string]struct {
		command order.Command
		guarded bool
	}{
		"a key":                   {order.Command{Key: "k", Lines: []order.Line{bare}}, true},
		"a number":                {order.Command{Lines: []order.Line{numbered}}, true},
		"neither":                 {order.Command{Lines: []order.Line{bare}}, false},
		"a line without a number": {order.Command{Lines: []order.Line{numbered, bare}}, false},
	} {
		require.Equal(t, c.guarded, c.command.Guarded(), name)
	}
}
