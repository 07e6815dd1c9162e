package ordertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func takenNumber(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	base := order.Line{SKU: d.sku, Quantity: 2, Amount: 10_00, ExternalOrderNo: "B-1"}
	id := d.orderID(d.decide(d.one("k", base), order.Created).Receipt).String()

	sku, quantity, amount, all := base, base, base, base
	sku.SKU += "x"
	quantity.Quantity = 3
	amount.Amount = 10_01
	all.SKU, all.Quantity, all.Amount = "other", 1, 1
	for _, tc := range []struct {
		key    string
		line   order.Line
		reason order.ConflictReason
		fields []string
	}{
		{"same", base, order.Exists, nil},
		{"sku", sku, order.ExistsDifferent, []string{"sku"}},
		{"quantity", quantity, order.ExistsDifferent, []string{"quantity"}},
		{"amount", amount, order.ExistsDifferent, []string{"amount"}},
		{"all", all, order.ExistsDifferent, []string{"sku", "quantity", "amount"}},
	} {
		c := d.one(tc.key, tc.line)
		got, rejected := d.refuse(c, order.OrderAlreadyExists)
		require.True(t, got.Remembered)
		require.Len(t, rejected.Conflicts, 1)
		conflict := rejected.Conflicts[0]
		require.Equal(t, 0, conflict.Row)
		require.Equal(t, "B-1", conflict.ExternalOrderNo)
		require.Equal(t, tc.reason, conflict.Reason, tc.key)
		require.Equal(t, id, conflict.OrderID)
		require.ElementsMatch(t, tc.fields, conflict.Fields, tc.key)

		sameReceipt(t, got.Receipt, d.decide(c, order.Replayed).Receipt)
	}
	d.holds(90_00, 1, 6)

	got, _ := d.refuse(d.one("", base), order.OrderAlreadyExists)
	require.False(t, got.Remembered)
	d.holds(90_00, 1, 6)
}

func numbersByteForByte(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	numbers := []string{"B-1", "b-1", "B-1.", "é", "e", "E", "ß", "ss", "😀", "𣎷", "a b", "a  b"}
	for _, n := range numbers {
		d.decide(d.one(unique("k"), d.numbered(1_00, n)), order.Created)
	}
	for _, n := range numbers {
		_, r := d.refuse(d.one(unique("k"), d.numbered(1_00, n)), order.OrderAlreadyExists)
		require.Equal(t, n, r.Conflicts[0].ExternalOrderNo)
		require.Equal(t, order.Exists, r.Conflicts[0].Reason)
	}
	d.holds(88_00, 12, 24)
}

func balanceRefused(t *testing.T, h Harness) {
	d := newDesk(t, h, 5_00)
	c := d.one("k", d.line(5_01))
	first, r := d.refuse(c, order.InsufficientBalance)
	require.True(t, first.Remembered)
	require.Empty(t, r.Conflicts)
	require.Equal(t, c.Digest, first.Receipt.Digest)
	require.Equal(t, h.Identity(), first.Receipt.Server)
	require.Empty(t, first.Receipt.Response.Location)
	d.holds(5_00, 0, 1)

	require.NoError(t, h.SetBalance(d.ctx, d.user, 100_00))
	again := d.decide(c, order.Replayed)
	sameReceipt(t, first.Receipt, again.Receipt)
	require.Equal(t, order.Failed, again.Receipt.State)
	d.decide(d.one("k", d.line(5_00)), order.Reused)
	d.holds(100_00, 0, 1)

	d.decide(d.one("k-2", d.line(5_01)), order.Created)
	d.holds(94_99, 1, 2)
}

func stockRefused(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	require.NoError(t, h.SetStock(d.ctx, d.sku, 2))
	line := order.Line{SKU: d.sku, Quantity: 3, Amount: 3_00}
	c := d.one("k", line)
	first, r := d.refuse(c, order.OutOfStock)
	require.True(t, first.Remembered)
	require.Equal(t, d.sku, r.SKU)
	d.stocked(d.sku, 2)
	d.holds(100_00, 0, 1)

	require.NoError(t, h.SetStock(d.ctx, d.sku, 3))
	sameReceipt(t, first.Receipt, d.decide(c, order.Replayed).Receipt)
	d.stocked(d.sku, 3)

	d.decide(d.one("k-2", line), order.Created)
	d.stocked(d.sku, 0)
	d.refuse(d.one("k-3", d.line(1_00)), order.OutOfStock)
	d.holds(97_00, 1, 3)
}

func stockByteForByte(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	limited := d.sku + "-é"
	require.NoError(t, h.SetStock(d.ctx, limited, 0))
	for _, free := range []string{d.sku + "-e", d.sku + "-É", d.sku, d.sku + "-é.", d.sku + "-😀"} {
		_, isLimited, err := h.Stock(d.ctx, free)
		require.NoError(t, err)
		require.False(t, isLimited)
		d.decide(d.one(unique("k"), order.Line{SKU: free, Quantity: order.MaxQuantity, Amount: 1_00}), order.Created)
	}
	d.refuse(d.one("k", order.Line{SKU: limited, Quantity: 1, Amount: 1_00}), order.OutOfStock)
}

func lastCent(t *testing.T, h Harness) {
	d := newDesk(t, h, 10)
	require.NoError(t, h.SetStock(d.ctx, d.sku, 2))
	d.refuse(d.one("k-1", d.line(11)), order.InsufficientBalance)
	d.decide(d.one("k-2", d.line(9)), order.Created)
	d.decide(d.one("k-3", d.line(1)), order.Created)
	d.holds(0, 2, 3)
	d.stocked(d.sku, 0)

	d.sku = unique("sku")
	d.refuse(d.one("k-4", d.line(1)), order.InsufficientBalance)
}

func unknownUser(t *testing.T, h Harness) {
	d := newStranger(t, h)
	for _, c := range []*order.Command{d.one("k", d.line(1_00)), d.one("", d.line(1_00)), d.batch("b", d.numbered(1_00, "B-1"))} {
		_, err := h.Decide(d.ctx, c)
		require.ErrorIs(t, err, order.ErrUnknownUser)
		require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(err))
	}
	d.counts(0, 0)
	_, err := h.Balance(d.ctx, d.user)
	require.ErrorIs(t, err, order.ErrNotFound)
	for _, read := range []func() error{
		func() error { _, err := h.Find(d.ctx, d.user, "k"); return err },
		func() error { _, err := h.Confirm(d.ctx, d.user, "k"); return err },
		func() error { _, err := h.Order(d.ctx, d.user, order.ID{1}); return err },
	} {
		require.ErrorIs(t, read(), order.ErrNotFound)
	}

	require.NoError(t, h.SetBalance(d.ctx, d.user, 10_00))
	d.decide(d.one("k", d.line(1_00)), order.Created)
	d.holds(9_00, 1, 1)
}

func refusalsForgotten(t *testing.T, h Harness) {
	d := newDesk(t, h, 5_00)
	c := d.one("k", d.line(6_00))
	for range 2 {
		got, refusal := d.refuse(c, order.InsufficientBalance)
		require.False(t, got.Remembered)
		require.True(t, refusal.Forgotten, "the answer has to know it")
		require.Equal(t, c.Digest, got.Receipt.Digest)
	}
	d.holds(5_00, 0, 0)
	_, err := h.Find(d.ctx, d.user, "k")
	require.ErrorIs(t, err, order.ErrNotFound)

	require.NoError(t, h.SetBalance(d.ctx, d.user, 10_00))
	first := d.decide(c, order.Created)
	require.True(t, first.Remembered)
	sameReceipt(t, first.Receipt, d.decide(c, order.Replayed).Receipt)
	d.holds(4_00, 1, 1)
}

func provisioned(t *testing.T, h Harness) {
	d := newStranger(t, h)
	d.decide(d.one("k", d.line(30_00)), order.Created)
	d.decide(d.one("k", d.line(30_00)), order.Replayed)
	d.holds(70_00, 1, 1)

	refused := newStranger(t, h)
	refused.refuse(refused.one("k", refused.line(100_01)), order.InsufficientBalance)
	refused.holds(100_00, 0, 1)

	raced := newStranger(t, h)
	commands := make([]*order.Command, 12)
	for i := range commands {
		commands[i] = raced.one(unique("k"), raced.line(10_00))
	}
	kinds := raced.tally(raced.race([]Harness{h, h.Sibling(t)}, commands))
	require.Equal(t, map[order.Kind]int{order.Created: 10, order.Rejected: 2}, kinds)
	raced.holds(0, 10, 12)
}
