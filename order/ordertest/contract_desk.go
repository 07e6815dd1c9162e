package ordertest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// patience bounds each test of the contract. No test waits for it to pass.
const patience = 60 * time.Second

var (
	runID   = sync.OnceValue(func() string { return randomHex(5) })
	counter atomic.Int64
)

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// unique returns a name that no other test, process or run has.
func unique(prefix string) string {
	return fmt.Sprintf("%s-%s-%d", prefix, runID(), counter.Add(1))
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
	Cleanup(f func())
}

// desk is where one test orders for one user.
type desk struct {
	t    tester
	ctx  context.Context
	h    Harness
	user string
	sku  string // unlimited, unless the test sets its stock
}

// newDesk opens a desk for a new user with the balance.
func newDesk(t tester, h Harness, balance order.Amount) *desk {
	t.Helper()
	d := newStranger(t, h)
	require.NoError(t, h.SetBalance(d.ctx, d.user, balance))
	return d
}

// newStranger opens a desk for a user without an account.
func newStranger(t tester, h Harness) *desk {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return &desk{t: t, ctx: ctx, h: h, user: unique("user"), sku: unique("sku")}
}

func (d *desk) line(amount order.Amount) order.Line {
	return order.Line{SKU: d.sku, Quantity: 1, Amount: amount}
}

func (d *desk) numbered(amount order.Amount, number string) order.Line {
	l := d.line(amount)
	l.ExternalOrderNo = number
	return l
}

// one makes a command for a single order.
func (d *desk) one(key string, l order.Line) *order.Command {
	d.t.Helper()
	c, err := order.NewCommand(order.CreateOrder, d.user, order.Key(key), []order.Line{l})
	require.NoError(d.t, err)
	return c
}

// batch makes a command for several orders.
func (d *desk) batch(key string, lines ...order.Line) *order.Command {
	d.t.Helper()
	c, err := order.NewCommand(order.CreateBatch, d.user, order.Key(key), lines)
	require.NoError(d.t, err)
	return c
}

// decide wants an outcome of this kind.
func (d *desk) decide(c *order.Command, want order.Kind) order.Decision {
	d.t.Helper()
	got, err := d.h.Decide(d.ctx, c)
	require.NoError(d.t, err)
	require.Equal(d.t, want.String(), got.Kind.String(), "body: %s", got.Receipt.Response.Body)
	return got
}

// refuse wants a refusal with this code.
func (d *desk) refuse(c *order.Command, want order.RejectionCode) (order.Decision, PlainRejected) {
	d.t.Helper()
	got := d.decide(c, order.Rejected)
	require.Equal(d.t, order.Failed, got.Receipt.State)
	r := d.rejected(got.Receipt)
	require.Equal(d.t, want, r.Code)
	require.Equal(d.t, c.Operation, r.Operation)
	require.NotNil(d.t, got.Rejection)
	require.Equal(d.t, want, got.Rejection.Code)
	return got, r
}

func (d *desk) created(r order.Receipt) PlainCreated {
	d.t.Helper()
	c, err := ParseCreated(r.Response.Body)
	require.NoError(d.t, err, "body: %s", r.Response.Body)
	return c
}

func (d *desk) rejected(r order.Receipt) PlainRejected {
	d.t.Helper()
	c, err := ParseRejected(r.Response.Body)
	require.NoError(d.t, err, "body: %s", r.Response.Body)
	return c
}

// orderID reads the id of the single order in a receipt.
func (d *desk) orderID(r order.Receipt) order.ID {
	d.t.Helper()
	c := d.created(r)
	require.Len(d.t, c.Orders, 1)
	id, err := order.ParseID(c.Orders[0].ID)
	require.NoError(d.t, err)
	return id
}

// holds wants the user to have exactly this.
func (d *desk) holds(balance order.Amount, orders, records int) {
	d.t.Helper()
	b, err := d.h.Balance(d.ctx, d.user)
	require.NoError(d.t, err)
	require.Equal(d.t, balance.String(), b.String(), "balance")
	d.counts(orders, records)
}

func (d *desk) counts(orders, records int) {
	d.t.Helper()
	n, err := d.h.CountOrders(d.ctx, d.user)
	require.NoError(d.t, err)
	require.Equal(d.t, orders, n, "orders")
	n, err = d.h.CountRecords(d.ctx, d.user)
	require.NoError(d.t, err)
	require.Equal(d.t, records, n, "records")
}

func (d *desk) stocked(sku string, want int64) {
	d.t.Helper()
	n, limited, err := d.h.Stock(d.ctx, sku)
	require.NoError(d.t, err)
	require.True(d.t, limited, "the SKU is limited")
	require.Equal(d.t, want, n, "stock")
}

// sameReceipt wants a replay to be the first answer, byte for byte. Which server
// answered may differ.
func sameReceipt(t tester, first, again order.Receipt) {
	t.Helper()
	require.Equal(t, string(first.Response.Body), string(again.Response.Body))
	require.Equal(t, first.Response.Status, again.Response.Status)
	require.Equal(t, first.Response.ContentType, again.Response.ContentType)
	require.Equal(t, first.Response.Location, again.Response.Location)
	require.Equal(t, first.Digest, again.Digest)
	require.Equal(t, first.State, again.State)
	require.Equal(t, first.FirstSeen.UnixMilli(), again.FirstSeen.UnixMilli())
}

// result is what one racer got.
type result struct {
	order.Decision
	err error
}

// race submits all commands at once, the i-th to the ledger i modulo their number.
func (d *desk) race(ledgers []Harness, commands []*order.Command) []result {
	results := make([]result, len(commands))
	start := make(chan struct{})
	var ready, done sync.WaitGroup
	for i := range commands {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			results[i].Decision, results[i].err = ledgers[i%len(ledgers)].Decide(d.ctx, commands[i])
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
	return results
}

// tally counts the outcomes of a race in which nobody may fail.
func (d *desk) tally(results []result) map[order.Kind]int {
	d.t.Helper()
	kinds := map[order.Kind]int{}
	for i := range results {
		require.NoError(d.t, results[i].err)
		kinds[results[i].Kind]++
	}
	return kinds
}
