package ordertest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oncegate/oncegate/order"
)

// model is the promise for one user in a few lines: what a key has decided it
// keeps, and everything else is arithmetic.
type model struct {
	balance order.Amount
	stock   int64
	keys    map[order.Key]order.Receipt
	numbers map[string]bool
	orders  int
}

func (m *model) want(c *order.Command) order.Kind {
	if r, ok := m.keys[c.Key]; ok {
		if r.Digest == c.Digest {
			return order.Replayed
		}
		return order.Reused
	}
	var sum order.Amount
	var pieces int64
	mine := map[string]bool{}
	for _, l := range c.Lines {
		if l.ExternalOrderNo != "" && (m.numbers[l.ExternalOrderNo] || mine[l.ExternalOrderNo]) {
			return order.Rejected
		}
		mine[l.ExternalOrderNo] = true
		sum, pieces = sum+l.Amount, pieces+l.Quantity
	}
	if sum > m.balance || pieces > m.stock {
		return order.Rejected
	}
	m.balance, m.stock, m.orders = m.balance-sum, m.stock-pieces, m.orders+len(c.Lines)
	for number := range mine {
		m.numbers[number] = true
	}
	return order.Created
}

// followsModel drives random sequences of orders and batches that collide in
// keys, numbers, balance and stock.
func followsModel(t *testing.T, h Harness) {
	amounts := rapid.SampledFrom([]order.Amount{1_00, 2_00, 3_00})
	keys := rapid.SampledFrom([]order.Key{"a", "A", "b", "c", "d", "e", ""})
	numbers := rapid.SampledFrom([]string{"1", "2", "3", "4", "5", "6"})
	sibling := h.Sibling(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{
			balance: rapid.SampledFrom([]order.Amount{0, 4_00, 9_00, 100_00}).Draw(rt, "balance"),
			stock:   rapid.SampledFrom([]int64{0, 3, 8, 100}).Draw(rt, "stock"),
			keys:    map[order.Key]order.Receipt{}, numbers: map[string]bool{},
		}
		d := newDesk(rt, h, m.balance)
		require.NoError(rt, h.SetStock(d.ctx, d.sku, m.stock))
		line := func(number string) order.Line {
			return order.Line{
				SKU: d.sku, Quantity: rapid.Int64Range(1, 2).Draw(rt, "quantity"),
				Amount: amounts.Draw(rt, "amount"), ExternalOrderNo: number,
			}
		}
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			op, lines := order.CreateOrder, []order.Line(nil)
			if rapid.Bool().Draw(rt, "batch") {
				op = order.CreateBatch
				for range rapid.IntRange(1, 3).Draw(rt, "rows") {
					lines = append(lines, line(numbers.Draw(rt, "number")))
				}
			} else {
				lines = append(lines, line(rapid.SampledFrom([]string{"", "", "1", "2"}).Draw(rt, "number")))
			}
			c, err := order.NewCommand(op, d.user, keys.Draw(rt, "key"), lines)
			require.NoError(rt, err)
			ledger := rapid.SampledFrom([]Harness{h, sibling}).Draw(rt, "ledger")

			want := m.want(c)
			got, err := ledger.Decide(d.ctx, c)
			require.NoError(rt, err)
			require.Equal(rt, want.String(), got.Kind.String(), "body: %s", got.Receipt.Response.Body)
			switch got.Kind {
			case order.Created, order.Rejected:
				require.Equal(rt, c.Key != "", got.Remembered)
				if c.Key != "" {
					m.keys[c.Key] = got.Receipt
				}
			case order.Replayed:
				require.Equal(rt, string(m.keys[c.Key].Response.Body), string(got.Receipt.Response.Body))
			}
		}
		d.stocked(d.sku, m.stock)
		d.holds(m.balance, m.orders, len(m.keys))
	})
}
