package ordertest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// threeLedgers are three gateways on one database.
func threeLedgers(t *testing.T, h Harness) []Harness {
	t.Helper()
	return []Harness{h, h.Sibling(t), h.Sibling(t)}
}

func raceOneKey(t *testing.T, h Harness) {
	ledgers := threeLedgers(t, h)
	for range 3 {
		d := newDesk(t, h, 100_00)
		results := d.race(ledgers, slices.Repeat([]*order.Command{d.one("k", d.numbered(1_00, "B-1"))}, 64))
		require.Equal(t, map[order.Kind]int{order.Created: 1, order.Replayed: 63}, d.tally(results))
		for i := range results {
			sameReceipt(t, results[0].Receipt, results[i].Receipt)
		}
		d.holds(99_00, 1, 1)
	}
}

func raceTwoBodies(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	bodies := []*order.Command{d.one("k", d.line(1_00)), d.one("k", d.line(2_00))}
	commands := slices.Repeat(bodies, 16)
	results := d.race(threeLedgers(t, h), commands)
	require.Equal(t, map[order.Kind]int{order.Created: 1, order.Replayed: 15, order.Reused: 16}, d.tally(results))
	for i := range results {
		if results[i].Kind == order.Reused {
			require.NotEqual(t, commands[i].Digest, results[i].Receipt.Digest)
		} else {
			require.Equal(t, commands[i].Digest, results[i].Receipt.Digest)
		}
	}
	d.counts(1, 1)
}

func raceOneNumber(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	commands := make([]*order.Command, 24)
	for i := range commands {
		commands[i] = d.one(unique("k"), d.numbered(1_00, "B-1"))
	}
	results := d.race(threeLedgers(t, h), commands)
	require.Equal(t, map[order.Kind]int{order.Created: 1, order.Rejected: 23}, d.tally(results))
	winner := results[slices.IndexFunc(results, func(r result) bool { return r.Kind == order.Created })]
	id := d.orderID(winner.Receipt).String()
	for i := range results {
		if results[i].Kind != order.Rejected {
			continue
		}
		r := d.rejected(results[i].Receipt)
		require.Equal(t, order.OrderAlreadyExists, r.Code)
		require.Equal(t, []PlainConflict{{ExternalOrderNo: "B-1", Reason: order.Exists, OrderID: id}}, r.Conflicts)
	}
	d.holds(99_00, 1, 24)
}

func raceBalance(t *testing.T, h Harness) {
	d := newDesk(t, h, 50_00)
	commands := make([]*order.Command, 50)
	for i := range commands {
		commands[i] = d.one(unique("k"), d.line(5_00))
	}
	kinds := d.tally(d.race(threeLedgers(t, h), commands))
	require.Equal(t, map[order.Kind]int{order.Created: 10, order.Rejected: 40}, kinds)
	d.holds(0, 10, 50)
}

// raceStock is raced by ten users: the user's lock alone does not protect stock.
func raceStock(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	require.NoError(t, h.SetStock(d.ctx, d.sku, 20))
	desks := make([]*desk, 10)
	commands := make([]*order.Command, 0, 50)
	for i := range desks {
		desks[i] = newDesk(t, h, 100_00)
		for range 5 {
			commands = append(commands, desks[i].one(unique("k"), order.Line{SKU: d.sku, Quantity: 2, Amount: 1_00}))
		}
	}
	results := d.race(threeLedgers(t, h), commands)
	require.Equal(t, map[order.Kind]int{order.Created: 10, order.Rejected: 40}, d.tally(results))
	for i := range results {
		if results[i].Kind == order.Rejected {
			require.Equal(t, order.OutOfStock, d.rejected(results[i].Receipt).Code)
		}
	}
	d.stocked(d.sku, 0)
	spent := order.Amount(0)
	for _, u := range desks {
		b, err := h.Balance(u.ctx, u.user)
		require.NoError(t, err)
		spent += 100_00 - b
	}
	require.Equal(t, "10.00", spent.String())
}

// raceUnequal: whoever was refused could not have been served from what is left.
func raceUnequal(t *testing.T, h Harness) {
	d := newDesk(t, h, 100_00)
	commands := make([]*order.Command, 40)
	for i := range commands {
		commands[i] = d.one(unique("k"), d.line(order.Amount(i+1)*25))
	}
	results := d.race(threeLedgers(t, h), commands)
	left, made := order.Amount(100_00), 0
	for i := range results {
		require.NoError(t, results[i].err)
		if results[i].Kind == order.Created {
			left -= commands[i].Lines[0].Amount
			made++
		}
	}
	require.GreaterOrEqual(t, left, order.Amount(0))
	for i := range results {
		if results[i].Kind == order.Rejected {
			require.Greater(t, commands[i].Lines[0].Amount, left)
		}
	}
	d.holds(left, made, 40)
}

// raceCrossedStock takes two stock rows in both orders, by many users at once.
func raceCrossedStock(t *testing.T, h Harness) {
	a, b := unique("a"), unique("b")
	first := newDesk(t, h, 100_00)
	require.NoError(t, h.SetStock(first.ctx, a, 1000))
	require.NoError(t, h.SetStock(first.ctx, b, 1000))
	var commands []*order.Command
	for i := range 8 {
		d := newDesk(t, h, 100_00)
		for range 6 {
			lines := []order.Line{
				{SKU: a, Quantity: 1, Amount: 1_00, ExternalOrderNo: unique("n")},
				{SKU: b, Quantity: 1, Amount: 1_00, ExternalOrderNo: unique("n")},
			}
			if i%2 == 1 {
				slices.Reverse(lines)
			}
			commands = append(commands, d.batch(unique("k"), lines...))
		}
	}
	kinds := first.tally(first.race(threeLedgers(t, h), commands))
	require.Equal(t, map[order.Kind]int{order.Created: 48}, kinds)
	first.stocked(a, 952)
	first.stocked(b, 952)
}

// mixedGroup submits every kind of outcome at once, several rounds of it: each
// command gets its own.
func mixedGroup(t *testing.T, h Harness) {
	old := newDesk(t, h, 100_00)
	replayed := old.one("old", old.line(1_00))
	first := old.decide(replayed, order.Created)
	poor, fresh, stranger := newDesk(t, h, 1_00), newDesk(t, h, 100_00), newStranger(t, h)

	var commands []*order.Command
	var want []order.Kind
	add := func(c *order.Command, k order.Kind) { commands, want = append(commands, c), append(want, k) }
	for range 6 {
		add(replayed, order.Replayed)
		add(old.one("old", old.line(2_00)), order.Reused)
		add(poor.one(unique("k"), poor.line(1_01)), order.Rejected)
		add(fresh.one(unique("k"), fresh.line(1_00)), order.Created)
		add(old.one(unique("k"), old.line(1_00)), order.Created)
		add(stranger.one(unique("k"), stranger.line(1_00)), 0)
	}
	results := old.race([]Harness{h}, commands)
	for i, r := range results {
		if want[i] == 0 {
			require.ErrorIs(t, r.err, order.ErrUnknownUser)
			require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(r.err))
			continue
		}
		require.NoError(t, r.err)
		require.Equal(t, want[i].String(), r.Kind.String())
		switch r.Kind {
		case order.Replayed:
			sameReceipt(t, first.Receipt, r.Receipt)
		case order.Created:
			got := old.created(r.Receipt).Orders[0]
			require.Equal(t, commands[i].UserID, got.UserID)
			require.Equal(t, commands[i].Lines[0].SKU, got.SKU)
		}
	}
	old.holds(93_00, 7, 7)
	poor.holds(1_00, 0, 6)
	fresh.holds(94_00, 6, 6)
	stranger.counts(0, 0)
}
