package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// two is a batch of two rows with these numbers.
func two(first, second string) string {
	return fmt.Sprintf(`{"orders":[{"sku":"a","quantity":1,"amount":1,"external_order_no":%q},{"sku":"b","quantity":2,"amount":"2","external_order_no":%q}]}`, first, second)
}

func TestABatchWithOneKeyAndOneContentIsOneBatch(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	first := k.batch(two("1", "2"), key("b/1"))
	require.Equal(t, http.StatusCreated, first.status, first.body)
	require.Equal(t, "/api/requests/b%2F1", first.header.Get("Location"))
	require.Less(t, strings.Index(first.body, `"sku":"a"`), strings.Index(first.body, `"sku":"b"`), "in row order")
	for _, body := range []string{
		two("1", "2"),
		`{"orders":[{"external_order_no":"1","amount":"1.00","sku":"a","quantity":1}, {"sku":"\u0062","quantity":2,"amount":2.0,"external_order_no":"2"}]}`,
	} {
		again := k.batch(body, key(`"b/1"`))
		require.Equal(t, http.StatusCreated, again.status)
		require.Equal(t, first.body, again.body)
		require.Equal(t, first.header.Get("Location"), again.header.Get("Location"))
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
	}
	require.Contains(t, k.get(first.header.Get("Location")).body, `"body":`+first.body)
	require.Equal(t, 1, k.ledger.CommitCount())
}

func TestABatchKeyOfAnotherContentIsReused(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.batch(two("1", "2"), key("k"))
	one := k.post(`{"sku":"a","quantity":1,"amount":1,"external_order_no":"9"}`, key("single"))
	require.Equal(t, http.StatusCreated, one.status)
	for name, r := range map[string]reply{
		"other number":        k.batch(two("1", "3"), key("k")),
		"rows swapped":        k.batch(`{"orders":[{"sku":"b","quantity":2,"amount":2,"external_order_no":"2"},{"sku":"a","quantity":1,"amount":1,"external_order_no":"1"}]}`, key("k")),
		"a row less":          k.batch(`{"orders":[{"sku":"a","quantity":1,"amount":1,"external_order_no":"1"}]}`, key("k")),
		"an order":            k.post(`{"sku":"a","quantity":1,"amount":1,"external_order_no":"1"}`, key("k")),
		"a batch of an order": k.batch(`{"orders":[{"sku":"a","quantity":1,"amount":1,"external_order_no":"9"}]}`, key("single")),
	} {
		p := r.problem(t)
		require.Equal(t, http.StatusConflict, r.status, name)
		require.Equal(t, "IDEMPOTENCY_KEY_REUSED", p.Code, name)
		require.Empty(t, r.header.Values("Retry-After"), name)
		require.Empty(t, p.Conflicts, "nothing is said of what the key was used for")
	}
	require.Equal(t, 2, k.ledger.CommitCount())
}

func TestABatchOfTakenNumbersNamesEveryRow(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	first := k.batch(two("1", "2"), key("k1"))
	require.Equal(t, http.StatusCreated, first.status)
	body := `{"orders":[
		{"sku":"a","quantity":1,"amount":1,"external_order_no":"1"},
		{"sku":"b","quantity":3,"amount":2.5,"external_order_no":"2"},
		{"sku":"c","quantity":1,"amount":1,"external_order_no":"3"},
		{"sku":"c","quantity":1,"amount":1,"external_order_no":"3"}]}`
	refused := k.batch(body, key("k2"))
	p := refused.problem(t)
	require.Equal(t, http.StatusConflict, refused.status)
	require.Equal(t, "ORDER_ALREADY_EXISTS", p.Code)
	require.Equal(t, "rejected", p.Outcome)
	require.Empty(t, refused.header.Values("Retry-After"))
	require.Len(t, p.Conflicts, 3, "all of them, not the first")
	require.Equal(t, "exists", p.Conflicts[0].Reason)
	require.Equal(t, "exists_different", p.Conflicts[1].Reason)
	require.Equal(t, []string{"quantity", "amount"}, p.Conflicts[1].Fields)
	require.Equal(t, "duplicate_in_batch", p.Conflicts[2].Reason)
	require.Equal(t, []int{0, 1, 3}, []int{p.Conflicts[0].Row, p.Conflicts[1].Row, p.Conflicts[2].Row})
	require.Equal(t, []string{"1", "2", "3"}, []string{p.Conflicts[0].ExternalOrderNo, p.Conflicts[1].ExternalOrderNo, p.Conflicts[2].ExternalOrderNo})
	require.Contains(t, first.body, p.Conflicts[0].OrderID)
	require.Contains(t, first.body, p.Conflicts[1].OrderID)
	require.Empty(t, p.Conflicts[2].OrderID)

	again := k.batch(body, key("k2"))
	require.Equal(t, refused.body, again.body)
	require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
	same := k.batch(two("1", "2"), key("k3")).problem(t)
	require.Equal(t, "ORDER_ALREADY_EXISTS", same.Code, "the same content under another key is not a success either")
	require.Len(t, same.Conflicts, 2)
	require.Equal(t, 1, k.ledger.CommitCount())

	theirs := k.do(http.MethodPost, "/api/order-batches", two("1", "2"), as("bob"), key("k1"))
	require.Equal(t, http.StatusCreated, theirs.status, "numbers and keys are each user's own")
}

func TestBatchesThatArriveAtOnceAreOne(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	replies := make(chan reply, 16)
	for range cap(replies) {
		go func() { replies <- k.batch(two("1", "2"), key("k"), with("Prefer", "wait=10")) }()
	}
	first := <-replies
	for range cap(replies) - 1 {
		require.Equal(t, first.body, (<-replies).body)
	}
	require.Equal(t, http.StatusCreated, first.status)
	require.Equal(t, 1, k.ledger.CommitCount())

	for i := range cap(replies) {
		go func() { replies <- k.batch(two("x", "y"), key(fmt.Sprintf("k-%d", i))) }()
	}
	statuses := map[int]int{}
	for range cap(replies) {
		statuses[(<-replies).status]++
	}
	require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusConflict: cap(replies) - 1}, statuses)
	require.Equal(t, 2, k.ledger.CommitCount())
}

func TestABatchIsPaidAndSuppliedAsAWhole(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := context.Background()
	require.NoError(t, k.ledger.SetBalance(ctx, "alice", 3_00))
	require.NoError(t, k.ledger.SetStock(ctx, "b", 3))
	require.Equal(t, "INSUFFICIENT_BALANCE", k.batch(strings.Replace(two("1", "2"), `"amount":1`, `"amount":1.01`, 1), key("poor")).problem(t).Code)
	short := k.batch(strings.ReplaceAll(two("1", "2"), `"sku":"a","quantity":1`, `"sku":"b","quantity":2`), key("short"))
	require.Equal(t, http.StatusUnprocessableEntity, short.status)
	require.Equal(t, "OUT_OF_STOCK", short.problem(t).Code)
	require.Contains(t, short.body, `"sku":"b"`)
	require.Zero(t, k.ledger.CommitCount())

	require.Equal(t, http.StatusCreated, k.batch(two("1", "2"), key("fits")).status, "to the last cent, and the numbers are free")
	balance, err := k.ledger.Balance(ctx, "alice")
	require.NoError(t, err)
	require.Equal(t, order.Amount(0), balance)
	require.Equal(t, short.body, k.batch(strings.ReplaceAll(two("1", "2"), `"sku":"a","quantity":1`, `"sku":"b","quantity":2`), key("short")).body)
}

func TestEveryBadRowOfABatchIsListed(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	faults := k.batch(`{"orders":[{"sku":"","quantity":1,"amount":1,"external_order_no":"9"},7,{"sku":"b","quantity":1.5,"amount":"2"}]}`, key("b3"))
	require.ElementsMatch(t, []string{"orders[0].sku", "orders[1]", "orders[2].quantity", "orders[2].external_order_no"}, faults.problem(t).paths())
	k.tune(func(t *gateway.Tuning) { t.MaxRows = 1 })
	require.Equal(t, []string{"orders"}, k.batch(two("1", "2"), key("b4")).problem(t).paths())
	require.Zero(t, k.ledger.Calls().Decide)
}
