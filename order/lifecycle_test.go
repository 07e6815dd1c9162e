package order_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func TestNothingMovesBackwards(t *testing.T) {
	t.Parallel()
	const there, applied, stale, never = order.AlreadyThere, order.Applied, order.Stale, order.Impossible
	for from, to := range map[order.Status]map[order.Status]order.Effect{
		order.Pending:   {order.Pending: there, order.Paid: applied, order.Shipped: never, order.Cancelled: applied},
		order.Paid:      {order.Pending: never, order.Paid: there, order.Shipped: applied, order.Cancelled: never},
		order.Shipped:   {order.Pending: never, order.Paid: stale, order.Shipped: there, order.Cancelled: never},
		order.Cancelled: {order.Pending: never, order.Paid: never, order.Shipped: never, order.Cancelled: there},
	} {
		for to, want := range to {
			require.Equal(t, want, order.Next(from, to), "%s to %s", from, to)
		}
	}
}

func TestPaymentMessagesAreValidated(t *testing.T) {
	t.Parallel()
	good := order.PaymentMessage{
		Consumer: "webhook", MessageID: "msg_1", Type: order.EventPaymentSucceeded, Amount: 39_80, ProviderReference: "pi_1",
	}
	require.NoError(t, good.Validate())
	for path, spoil := range map[string]func(m *order.PaymentMessage){
		"type":                    func(m *order.PaymentMessage) { m.Type = order.EventShipped },
		"data.amount":             func(m *order.PaymentMessage) { m.Amount = 0 },
		"data.provider_reference": func(m *order.PaymentMessage) { m.ProviderReference = strings.Repeat("r", order.MaxReferenceLen+1) },
		"message id":              func(m *order.PaymentMessage) { m.MessageID = "k1 " },
	} {
		m := good
		spoil(&m)
		faults := faultsOf(t, m.Validate())
		require.Len(t, faults, 1)
		require.Equal(t, path, faults[0].Path)
	}
	require.Len(t, faultsOf(t, (&order.PaymentMessage{}).Validate()), 4)
}
