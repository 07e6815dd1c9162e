package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/client"
)

// The gateway refuses such a text. With another character in its place it would
// take it, and make an order that nobody wants.
func TestATextThatIsNotUTF8IsNotOrdered(t *testing.T) {
	t.Parallel()
	server := play(t)
	shop := quick(t, server.URL)
	for _, l := range []client.Line{
		{SKU: "tea\xff", Quantity: 1, Amount: "1.00"},
		{SKU: "tea", Quantity: 1, Amount: "1.00", ExternalOrderNo: "B\xfe1"},
	} {
		_, err := shop.CreateOrder(t.Context(), "cart", l)
		require.ErrorContains(t, err, "UTF-8")
		_, err = shop.CreateBatch(t.Context(), "import", []client.Line{dumplings, l})
		require.ErrorContains(t, err, "line 1")
	}
	require.Zero(t, server.requests())
}
