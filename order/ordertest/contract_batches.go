package ordertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func batchCreated(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	require.NoError(t, h.SetStock(d.ctx, d.sku, 5))
	lines := []order.Line{
		{SKU: d.sku, Quantity: 2, Amount: 10_00, ExternalOrderNo: "B-2"},
		{SKU: d.sku + "-free", Quantity: 7, Amount: 1, ExternalOrderNo: "B-1"},
		{SKU: d.sku, Quantity: 3, Amount: 20_00, ExternalOrderNo: "B-3"},
	}
	c := d.batch("k", lines...)
	first := d.decide(c, order.Created)
	sameReceipt(t, first.Receipt, d.decide(c, order.Replayed).Receipt)

	created := d.created(first.Receipt)
	require.Equal(t, order.CreateBatch, created.Operation)
	require.Len(t, created.Orders, len(lines))
	for i, got := range created.Orders {
		id, err := order.ParseID(got.ID)
		require.NoError(t, err)
		o, err := h.Order(d.ctx, d.user, id)
		require.NoError(t, err)
		require.Equal(t, lines[i], o.Line)
		require.Equal(t, i, o.LineNo)
		require.Equal(t, i, got.LineNo)
		require.Equal(t, order.Key("k"), o.Key)
		require.Equal(t, order.Pending, o.Status)
	}
	d.holds(69_99, 3, 1)
	d.stocked(d.sku, 0)

	swapped := d.batch("k", lines[1], lines[0], lines[2])
	d.decide(swapped, order.Reused)
}

func batchAllOrNothing(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	require.NoError(t, h.SetStock(d.ctx, d.sku, 3))

	d.refuse(d.batch("money", d.numbered(60_00, "B-1"), d.numbered(40_01, "B-2")), order.InsufficientBalance)

	pieces := func(n int64, number string) order.Line {
		return order.Line{SKU: d.sku, Quantity: n, Amount: 1_00, ExternalOrderNo: number}
	}
	_, r := d.refuse(d.batch("stock", pieces(2, "B-1"), pieces(2, "B-2")), order.OutOfStock)
	require.Equal(t, d.sku, r.SKU)

	d.decide(d.one("one", d.numbered(1_00, "B-9")), order.Created)
	d.refuse(d.batch("number", pieces(1, "B-1"), pieces(1, "B-9")), order.OrderAlreadyExists)
	d.holds(99_00, 1, 4)
	d.stocked(d.sku, 2)

	// The numbers of refused batches are free.
	d.decide(d.batch("again", pieces(1, "B-1"), pieces(1, "B-2")), order.Created)
	d.holds(97_00, 3, 5)
	d.stocked(d.sku, 0)
}

func batchConflicts(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	same := d.orderID(d.decide(d.one("k-1", d.numbered(1_00, "same")), order.Created).Receipt)
	other := d.orderID(d.decide(d.one("k-2", d.numbered(2_00, "other")), order.Created).Receipt)
	c := d.batch("k",
		d.numbered(1_00, "free"),
		d.numbered(1_00, "same"),
		d.numbered(2_01, "other"),
		d.numbered(1_00, "Free"),
		d.numbered(1_00, "free"),
		d.numbered(9_00, "free"),
	)
	got, r := d.refuse(c, order.OrderAlreadyExists)
	require.Equal(t, []PlainConflict{
		{Row: 1, ExternalOrderNo: "same", Reason: order.Exists, OrderID: same.String()},
		{Row: 2, ExternalOrderNo: "other", Reason: order.ExistsDifferent, OrderID: other.String(), Fields: []string{"amount"}},
		{Row: 4, ExternalOrderNo: "free", Reason: order.DuplicateInBatch},
		{Row: 5, ExternalOrderNo: "free", Reason: order.DuplicateInBatch},
	}, r.Conflicts)
	sameReceipt(t, got.Receipt, d.decide(c, order.Replayed).Receipt)
	d.holds(97_00, 2, 3)
}

// batchLarge has an answer of several hundred kilobytes: far more than a TEXT
// column or one network packet holds.
func batchLarge(t *testing.T, h Harness) {
	d := newDesk(t, h, order.MaxBalance)
	lines := make([]order.Line, order.MaxLines)
	for i := range lines {
		number := fmt.Sprintf("%03d", i)
		lines[i] = order.Line{
			SKU: d.sku, Quantity: 1, Amount: order.Amount(i + 1),
			ExternalOrderNo: number + strings.Repeat("𣎷", order.MaxOrderNoLen-len(number)),
		}
	}
	c := d.batch("k", lines...)
	first := d.decide(c, order.Created)
	created := d.created(first.Receipt)
	require.Len(t, created.Orders, order.MaxLines)
	for i := range lines {
		require.Equal(t, lines[i].ExternalOrderNo, created.Orders[i].ExternalOrderNo)
	}
	sameReceipt(t, first.Receipt, d.decide(c, order.Replayed).Receipt)
	found, err := h.Find(d.ctx, d.user, "k")
	require.NoError(t, err)
	sameReceipt(t, first.Receipt, found)
	d.holds(order.MaxBalance-order.MaxLines*(order.MaxLines+1)/2, order.MaxLines, 1)

	// All rows taken: the refusal is as long.
	_, r := d.refuse(d.batch("k-2", lines...), order.OrderAlreadyExists)
	require.Len(t, r.Conflicts, order.MaxLines)
}

func batchAgainstOrder(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	line := d.numbered(1_00, "B-1")
	d.decide(d.batch("k", line), order.Created)
	d.decide(d.one("k", line), order.Reused)
	d.holds(99_00, 1, 1)
}
