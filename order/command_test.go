package order_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func goodLine() order.Line {
	return order.Line{SKU: "potsticker", Quantity: 2, Amount: 39_80, ExternalOrderNo: "B20260827-001"}
}

func faultsOf(t *testing.T, err error) []order.FieldFault {
	t.Helper()
	var invalid *order.InvalidError
	require.ErrorAs(t, err, &invalid)
	return invalid.Faults
}

func TestLineIsValidated(t *testing.T) {
	t.Parallel()
	with := func(change func(l *order.Line)) order.Line {
		l := goodLine()
		change(&l)
		return l
	}
	sku := func(s string) order.Line { return with(func(l *order.Line) { l.SKU = s }) }
	number := func(s string) order.Line { return with(func(l *order.Line) { l.ExternalOrderNo = s }) }
	quantity := func(n int64) order.Line { return with(func(l *order.Line) { l.Quantity = n }) }
	amount := func(a order.Amount) order.Line { return with(func(l *order.Line) { l.Amount = a }) }
	for _, tc := range []struct {
		line order.Line
		path string // empty: valid
	}{
		{goodLine(), ""},
		{sku("a"), ""},
		{sku("a b"), ""},
		{sku(strings.Repeat("餃", 64)), ""},
		{sku(strings.Repeat("😀", 64)), ""},
		{sku("\uFFFD"), ""},
		{sku(""), "sku"},
		{sku(strings.Repeat("a", 65)), "sku"},
		{sku(strings.Repeat("😀", 65)), "sku"},
		{sku(" a"), "sku"},
		{sku("a "), "sku"},
		{sku(" "), "sku"},
		{sku("\u3000a"), "sku"},
		{sku("a\u00a0"), "sku"},
		{sku("a\u2028"), "sku"},
		{sku("a\nb"), "sku"},
		{sku("a\x00b"), "sku"},
		{sku("a\x7f"), "sku"},
		{sku("a\u0085b"), "sku"},
		{sku("a\xffb"), "sku"},
		{sku("\xed\xa0\x80"), "sku"},
		{number(""), ""},
		{number("é"), ""},
		{number(strings.Repeat("𣎷", 64)), ""},
		{number(strings.Repeat("𣎷", 65)), "external_order_no"},
		{number(" "), "external_order_no"},
		{number("a\tb"), "external_order_no"},
		{number("k1 "), "external_order_no"},
		{quantity(1), ""},
		{quantity(order.MaxQuantity), ""},
		{quantity(0), "quantity"},
		{quantity(-1), "quantity"},
		{quantity(order.MaxQuantity + 1), "quantity"},
		{quantity(1 << 62), "quantity"},
		{amount(1), ""},
		{amount(order.MaxAmount), ""},
		{amount(0), "amount"},
		{amount(-1), "amount"},
		{amount(order.MaxAmount + 1), "amount"},
	} {
		c, err := order.NewCommand(order.CreateOrder, "alice", "k", []order.Line{tc.line})
		if tc.path == "" {
			require.NoError(t, err, "%+v", tc.line)
			require.Equal(t, []order.Line{tc.line}, c.Lines)
			require.Equal(t, "alice", c.UserID)
			require.Equal(t, order.Key("k"), c.Key)
			continue
		}
		require.Nil(t, c)
		faults := faultsOf(t, err)
		require.Len(t, faults, 1, "%+v", tc.line)
		require.Equal(t, tc.path, faults[0].Path, "%+v", tc.line)
		require.NotEmpty(t, faults[0].Reason)
	}
}

func TestEveryFaultOfABatchIsListedWithItsPath(t *testing.T) {
	t.Parallel()
	bad := goodLine()
	bad.SKU, bad.Quantity, bad.Amount = "", 0, 0
	unnumbered := goodLine()
	unnumbered.ExternalOrderNo = ""
	_, err := order.NewCommand(order.CreateBatch, "alice", "k", []order.Line{goodLine(), bad, unnumbered})
	paths := make([]string, 0, 4)
	for _, f := range faultsOf(t, err) {
		paths = append(paths, f.Path)
	}
	require.Equal(t, []string{"orders[1].sku", "orders[1].quantity", "orders[1].amount", "orders[2].external_order_no"}, paths)
	require.Contains(t, err.Error(), "orders[1].sku is required")
	require.NotContains(t, err.Error(), "potsticker")
}

func TestACommandHasTheLinesItsOperationTakes(t *testing.T) {
	t.Parallel()
	lines := func(n int) []order.Line {
		l := make([]order.Line, n)
		for i := range l {
			l[i] = goodLine()
		}
		return l
	}
	for _, tc := range []struct {
		op    order.Operation
		lines int
		good  bool
	}{
		{order.CreateBatch, 1, true},
		{order.CreateBatch, order.MaxLines, true},
		{order.CreateBatch, 0, false},
		{order.CreateBatch, order.MaxLines + 1, false},
		{order.CreateOrder, 1, true},
		{order.CreateOrder, 0, false},
		{order.CreateOrder, 2, false},
	} {
		_, err := order.NewCommand(tc.op, "alice", "k", lines(tc.lines))
		require.Equal(t, tc.good, err == nil, "%s with %d lines: %v", tc.op, tc.lines, err)
		if !tc.good {
			faultsOf(t, err)
		}
	}
}

func TestUserIDsAreShortVisibleASCII(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a", "alice", "auth0|5f7c", "a@b.c", "~", "!", strings.Repeat("u", 64)} {
		require.True(t, order.ValidUserID(id), id)
	}
	for _, id := range []string{"", " ", "a b", "a\n", "\x00", "é", "a\x7f", "\xff", strings.Repeat("u", 65)} {
		require.False(t, order.ValidUserID(id), "%q", id)
	}
	require.True(t, order.ValidSKU("餃子"))
	require.False(t, order.ValidSKU(" 餃子"))
}

// TestDigestIsPinned: a receipt outlives the program that wrote it. Whoever
// changes the form must raise its version and keep reading the old one.
func TestDigestIsPinned(t *testing.T) {
	t.Parallel()
	unnumbered := goodLine()
	unnumbered.ExternalOrderNo = ""
	for _, tc := range []struct {
		op    order.Operation
		lines []order.Line
		want  string
	}{
		{order.CreateOrder, []order.Line{goodLine()}, "6cee563604b14cf3bbc8582b16c8b66ce428d8ba280f3657af297b4a42c1451d"},
		{order.CreateOrder, []order.Line{unnumbered}, "0f82e2168ed301e94182f1eab7acf511750143b18730012b859b719fc53ffb6d"},
		{order.CreateBatch, []order.Line{goodLine()}, "f6d8f27256ceef0ea1dcf13f558b9f0da9cedc710336c80af27edea20352b0a5"},
		{order.CreateBatch, []order.Line{
			{SKU: "餃子", Quantity: order.MaxQuantity, Amount: order.MaxAmount, ExternalOrderNo: "𣎷"},
			{SKU: "a", Quantity: 1, Amount: 1, ExternalOrderNo: "b"},
		}, "177612753a974819379c296b20b7072e6189fbf79ec9593fa11e0848c0dda899"},
	} {
		c, err := order.NewCommand(tc.op, "alice", "k", tc.lines)
		require.NoError(t, err)
		require.Equal(t, tc.want, hex.EncodeToString(c.Digest[:]))
	}
}
