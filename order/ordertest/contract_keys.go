package ordertest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func sameKeySameBody(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	c := d.one("k", d.numbered(39_80, "B-1"))

	first := d.decide(c, order.Created)
	require.True(t, first.Remembered)
	require.Equal(t, order.Succeeded, first.Receipt.State)
	require.Equal(t, c.Digest, first.Receipt.Digest)
	require.Equal(t, http.StatusCreated, first.Receipt.Response.Status)
	require.Equal(t, "application/json", first.Receipt.Response.ContentType)
	require.Equal(t, "/api/orders/"+d.orderID(first.Receipt).String(), first.Receipt.Response.Location)
	require.NotZero(t, first.Receipt.Server)
	require.Equal(t, h.Identity(), first.Receipt.Server)

	for range 3 {
		again := d.decide(c, order.Replayed)
		require.True(t, again.Remembered)
		sameReceipt(t, first.Receipt, again.Receipt)
	}
	d.holds(60_20, 1, 1)

	d.h = h.Sibling(t)
	sameReceipt(t, first.Receipt, d.decide(c, order.Replayed).Receipt)
	d.holds(60_20, 1, 1)
}

func sameKeyOtherBody(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	base := order.Line{SKU: d.sku, Quantity: 2, Amount: 10_00, ExternalOrderNo: "B-1"}
	c := d.one("k", base)
	first := d.decide(c, order.Created)

	sku, quantity, amount, number, none := base, base, base, base, base
	sku.SKU += "x"
	quantity.Quantity = 3
	amount.Amount = 10_01
	number.ExternalOrderNo = "B-2"
	none.ExternalOrderNo = ""
	for _, other := range []order.Line{sku, quantity, amount, number, none} {
		got := d.decide(d.one("k", other), order.Reused)
		sameReceipt(t, first.Receipt, got.Receipt)
	}
	d.decide(d.batch("k", base), order.Reused)

	sameReceipt(t, first.Receipt, d.decide(c, order.Replayed).Receipt)
	d.holds(90_00, 1, 1)
}

func keysByteForByte(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	keys := []string{"ord-abc", "ORD-ABC", "Ord-Abc", "ord-abc.", "ord_abc", "ord%abc", "0", "00", "0x0", "'", "{}", "{ord}-abc", "null", "-1", "~"}
	for _, key := range keys {
		d.decide(d.one(key, d.line(1_00)), order.Created)
	}
	for _, key := range keys {
		d.decide(d.one(key, d.line(1_00)), order.Replayed)
	}
	d.holds(100_00-order.Amount(len(keys))*1_00, len(keys), len(keys))
}

func longKeys(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	stem := strings.Repeat("k", order.MaxKeyLen-1)
	for _, key := range []string{stem, stem + "a", stem + "A", stem + "b"} {
		first := d.decide(d.one(key, d.line(1_00)), order.Created)
		sameReceipt(t, first.Receipt, d.decide(d.one(key, d.line(1_00)), order.Replayed).Receipt)

		o, err := h.Order(d.ctx, d.user, d.orderID(first.Receipt))
		require.NoError(t, err)
		require.Equal(t, key, string(o.Key))
	}
	d.holds(96_00, 4, 4)
}

func usersAreStrangers(t *testing.T, h Harness) {
	alice := newDesk(t, h, 10_00)
	upper := newDesk(t, h, 10_00)
	upper.user = strings.ToUpper(alice.user)
	require.NoError(t, h.SetBalance(upper.ctx, upper.user, 10_00))
	long := newDesk(t, h, 10_00)
	long.user += strings.Repeat("~", order.MaxUserIDLen-len(long.user))
	require.NoError(t, h.SetBalance(long.ctx, long.user, 10_00))

	bodies := map[string]bool{}
	for _, d := range []*desk{alice, upper, long} {
		first := d.decide(d.one("k", d.numbered(4_00, "B-1")), order.Created)
		created := d.created(first.Receipt)
		require.Equal(t, d.user, created.Orders[0].UserID)
		bodies[string(first.Receipt.Response.Body)] = true
		d.holds(6_00, 1, 1)
	}
	require.Len(t, bodies, 3)

	mallory := newDesk(t, h, 10_00)
	mallory.decide(mallory.one("k", mallory.line(1_00)), order.Created)
	alice.holds(6_00, 1, 1)
}

func anyScript(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	stem := unique("s")
	texts := []string{
		stem + "-餃子", stem + "-𣎷😀", stem + "-é", stem + "-e\u0301", stem + "-ß", stem + `-a'b"c\d%_`,
		stem + "-inner  blanks", stem + strings.Repeat("😀", order.MaxSKULen-len(stem)),
	}
	for i, text := range texts {
		line := order.Line{SKU: text, Quantity: int64(i + 1), Amount: 1_00, ExternalOrderNo: text}
		first := d.decide(d.one(unique("k"), line), order.Created)
		got := d.created(first.Receipt).Orders[0]
		require.Equal(t, text, got.SKU)
		require.Equal(t, text, got.ExternalOrderNo)

		o, err := h.Order(d.ctx, d.user, d.orderID(first.Receipt))
		require.NoError(t, err)
		require.Equal(t, line, o.Line)
	}
	d.holds(92_00, 8, 8)
}

func identicalOrders(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	first := d.decide(d.one("k-1", d.line(5_00)), order.Created)
	second := d.decide(d.one("k-2", d.line(5_00)), order.Created)
	require.NotEqual(t, d.orderID(first.Receipt), d.orderID(second.Receipt))
	d.holds(90_00, 2, 2)
}

func unprotected(t *testing.T, h Harness) {
	d := newDesk(t, h, 10_00)
	c := d.one("", d.line(4_00))
	ids := map[order.ID]bool{}
	for range 2 {
		got := d.decide(c, order.Created)
		require.Equal(t, order.Succeeded, got.Receipt.State)
		ids[d.orderID(got.Receipt)] = true
	}
	require.Len(t, ids, 2)
	for range 2 {
		got, _ := d.refuse(c, order.InsufficientBalance)
		require.False(t, got.Remembered)
	}
	d.holds(2_00, 2, 0)

	require.NoError(t, h.SetBalance(d.ctx, d.user, 100_00))
	d.decide(c, order.Created)
	many := make([]*order.Command, 16)
	for i := range many {
		many[i] = c
	}
	require.Equal(t, 16, d.tally(d.race([]Harness{h}, many))[order.Created])
	d.counts(19, 0)

	_, err := h.Find(d.ctx, d.user, "")
	require.ErrorIs(t, err, order.ErrNotFound)
}

func neighbours(t *testing.T, h Harness) {
	poor, rich := newDesk(t, h, 1_00), newDesk(t, h, 100_00)
	poor.refuse(poor.one("k", poor.line(2_00)), order.InsufficientBalance)
	rich.decide(rich.one("k", rich.line(2_00)), order.Created)
	poor.holds(1_00, 0, 1)
	rich.holds(98_00, 1, 1)
}
