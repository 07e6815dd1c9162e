package order_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oncegate/oncegate/order"
)

// drawText draws from few letters, so that fields run into one another often.
func drawText(rt *rapid.T, label string) string {
	return rapid.StringOfN(rapid.SampledFrom([]rune{'a', 'b', '1', '餃'}), 1, 4, -1).Draw(rt, label)
}

func drawCommand(rt *rapid.T, label string) (order.Operation, []order.Line) {
	op := rapid.SampledFrom([]order.Operation{order.CreateOrder, order.CreateBatch}).Draw(rt, label+" operation")
	n := 1
	if op == order.CreateBatch {
		n = rapid.IntRange(1, 3).Draw(rt, label+" rows")
	}
	lines := make([]order.Line, n)
	for i := range lines {
		lines[i] = order.Line{
			SKU: drawText(rt, label+" sku"), Quantity: rapid.Int64Range(1, 3).Draw(rt, label+" quantity"),
			Amount: order.Amount(rapid.Int64Range(1, 3).Draw(rt, label+" amount")), ExternalOrderNo: drawText(rt, label+" number"),
		}
		if op == order.CreateOrder && rapid.Bool().Draw(rt, label+" unnumbered") {
			lines[i].ExternalOrderNo = ""
		}
	}
	return op, lines
}

func TestDigestsAreEqualExactlyForEqualContent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		opA, linesA := drawCommand(rt, "a")
		opB, linesB := drawCommand(rt, "b")
		if rapid.Bool().Draw(rt, "copy") {
			opB, linesB = opA, slices.Clone(linesA)
		}
		// Who asks, and under which key, is no part of the content.
		a, err := order.NewCommand(opA, "alice", "k-1", linesA)
		require.NoError(rt, err)
		b, err := order.NewCommand(opB, "bob", "k-2", linesB)
		require.NoError(rt, err)
		require.Equal(rt, opA == opB && slices.Equal(linesA, linesB), a.Digest == b.Digest)
	})
}

func TestAnyOneChangeChangesTheDigest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		op, lines := drawCommand(rt, "a")
		before, err := order.NewCommand(op, "alice", "k", lines)
		require.NoError(rt, err)
		changed := slices.Clone(lines)
		l := &changed[rapid.IntRange(0, len(lines)-1).Draw(rt, "row")]
		switch rapid.IntRange(0, 3).Draw(rt, "member") {
		case 0:
			l.SKU += "x"
		case 1:
			l.Quantity++
		case 2:
			l.Amount++
		case 3:
			l.ExternalOrderNo += "x"
		}
		after, err := order.NewCommand(op, "alice", "k", changed)
		require.NoError(rt, err)
		require.NotEqual(rt, before.Digest, after.Digest)
	})
}

func TestALetterThatMovesToTheNextFieldChangesTheDigest(t *testing.T) {
	t.Parallel()
	line := func(sku, number string) []order.Line {
		return []order.Line{{SKU: sku, Quantity: 1, Amount: 1, ExternalOrderNo: number}}
	}
	a, err := order.NewCommand(order.CreateOrder, "alice", "k", line("ab", "c"))
	require.NoError(t, err)
	b, err := order.NewCommand(order.CreateOrder, "alice", "k", line("a", "bc"))
	require.NoError(t, err)
	require.NotEqual(t, a.Digest, b.Digest)
}
