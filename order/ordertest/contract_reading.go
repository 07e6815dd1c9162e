package ordertest

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func findAndConfirm(t *testing.T, h Harness) {
	d, other := newDesk(t, h, 10_00), newDesk(t, h, 10_00)
	created := d.decide(d.one("yes", d.line(1_00)), order.Created)
	refused, _ := d.refuse(d.one("no", d.line(100_00)), order.InsufficientBalance)

	sibling := h.Sibling(t)
	for _, ledger := range []Harness{h, sibling} {
		for key, want := range map[order.Key]order.Receipt{"yes": created.Receipt, "no": refused.Receipt} {
			found, err := ledger.Find(d.ctx, d.user, key)
			require.NoError(t, err)
			sameReceipt(t, want, found)
			confirmed, err := ledger.Confirm(d.ctx, d.user, key)
			require.NoError(t, err)
			sameReceipt(t, want, confirmed)
			for _, r := range []order.Receipt{found, confirmed} {
				if r.Server != 0 {
					require.Equal(t, ledger.Identity(), r.Server)
				}
			}
		}
		for _, key := range []order.Key{"never", "YES", "ye"} {
			_, err := ledger.Find(d.ctx, d.user, key)
			require.ErrorIs(t, err, order.ErrNotFound)
			_, err = ledger.Confirm(d.ctx, d.user, key)
			require.ErrorIs(t, err, order.ErrNotFound)
		}
		_, err := ledger.Find(d.ctx, other.user, "yes")
		require.ErrorIs(t, err, order.ErrNotFound)
		_, err = ledger.Confirm(d.ctx, other.user, "yes")
		require.ErrorIs(t, err, order.ErrNotFound)
		require.NotZero(t, ledger.Identity())
		require.Equal(t, h.Identity(), ledger.Identity())
	}
	d.holds(9_00, 1, 2)
}

func ordersPrivate(t *testing.T, h Harness) {
	d, other := newDesk(t, h, 10_00), newDesk(t, h, 10_00)
	id := d.orderID(d.decide(d.one("k", d.numbered(1_00, "B-1")), order.Created).Receipt)

	o, err := h.Order(d.ctx, d.user, id)
	require.NoError(t, err)
	require.Equal(t, id, o.ID)
	require.Equal(t, d.user, o.UserID)
	require.Equal(t, d.numbered(1_00, "B-1"), o.Line)
	require.Equal(t, order.Pending, o.Status)
	require.Equal(t, order.Key("k"), o.Key)
	require.Zero(t, o.LineNo)

	_, err = h.Order(d.ctx, other.user, id)
	require.ErrorIs(t, err, order.ErrNotFound)
	_, err = h.Order(d.ctx, d.user, order.NewID(time.Now()))
	require.ErrorIs(t, err, order.ErrNotFound)
	for _, before := range []order.ID{{}, order.NewID(time.Now().Add(time.Hour)), id} {
		list, err := h.Orders(d.ctx, other.user, before, 10)
		require.NoError(t, err)
		require.Empty(t, list)
	}
}

func paging(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	want := map[order.ID]bool{}
	for range 7 {
		want[d.orderID(d.decide(d.one(unique("k"), d.line(1_00)), order.Created).Receipt)] = true
	}
	batch := d.decide(d.batch("b", d.numbered(1, "1"), d.numbered(1, "2"), d.numbered(1, "3")), order.Created)
	for _, o := range d.created(batch.Receipt).Orders {
		id, err := order.ParseID(o.ID)
		require.NoError(t, err)
		want[id] = true
	}
	for _, size := range []int{1, 3, 10, 11} {
		got := map[order.ID]bool{}
		var last order.ID
		for {
			page, err := h.Orders(d.ctx, d.user, last, size)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), size)
			for _, o := range page {
				require.Equal(t, d.user, o.UserID)
				require.False(t, got[o.ID], "an order is on two pages")
				if !last.IsZero() {
					require.Negative(t, bytes.Compare(o.ID[:], last[:]), "newest first")
				}
				got[o.ID], last = true, o.ID
				one, err := h.Order(d.ctx, d.user, o.ID)
				require.NoError(t, err)
				require.Equal(t, one, o)
			}
			if len(page) < size {
				break
			}
		}
		require.Equal(t, want, got)
	}
}

func timesAgree(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	c := d.one("k", d.line(1_00))
	first := d.decide(c, order.Created)
	isPlain := func(at time.Time) {
		t.Helper()
		require.Equal(t, time.UTC, at.Location())
		require.Equal(t, at.Truncate(order.TimePrecision), at)
		require.False(t, at.IsZero())
	}
	isPlain(first.Receipt.FirstSeen)
	isPlain(d.decide(c, order.Replayed).Receipt.FirstSeen)
	found, err := h.Find(d.ctx, d.user, "k")
	require.NoError(t, err)
	isPlain(found.FirstSeen)

	o, err := h.Order(d.ctx, d.user, d.orderID(first.Receipt))
	require.NoError(t, err)
	isPlain(o.CreatedAt)
	isPlain(o.UpdatedAt)
	require.Equal(t, d.created(first.Receipt).Orders[0].CreatedAt, o.CreatedAt.Format(order.TimeFormat))
	require.WithinDuration(t, time.Now(), o.CreatedAt, time.Hour, "a time zone went astray")
}

func amountLimits(t *testing.T, h Harness) {
	d := newDesk(t, h, order.MaxBalance)
	d.holds(99_999_999_999_999, 0, 0)
	left := order.MaxBalance
	for i, amount := range []order.Amount{1, order.MaxAmount, 99, 1_00, 19_90, 12_345_678_901} {
		first := d.decide(d.one(unique("k"), d.line(amount)), order.Created)
		require.Equal(t, amount.String(), d.created(first.Receipt).Orders[0].Amount)
		o, err := h.Order(d.ctx, d.user, d.orderID(first.Receipt))
		require.NoError(t, err)
		require.Equal(t, amount, o.Line.Amount)
		left -= amount
		d.holds(left, i+1, i+1)
	}
	d.decide(d.one("q", order.Line{SKU: d.sku, Quantity: order.MaxQuantity, Amount: 1}), order.Created)

	// A hundred of the largest amount and one cent is more than anybody can have.
	lines := make([]order.Line, 101)
	for i := range lines {
		lines[i] = d.numbered(order.MaxAmount, unique("n"))
	}
	d.refuse(d.batch("b", lines...), order.InsufficientBalance)
}

func accountsSetAgain(t *testing.T, h Harness) {
	d := newDesk(t, h, 10_00)
	for _, balance := range []order.Amount{0, order.MaxBalance, 1, 1} {
		require.NoError(t, h.SetBalance(d.ctx, d.user, balance))
		d.holds(balance, 0, 0)
	}
	for _, available := range []int64{0, 1_000_000_000, 5, 5} {
		require.NoError(t, h.SetStock(d.ctx, d.sku, available))
		d.stocked(d.sku, available)
	}
}
