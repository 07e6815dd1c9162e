package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"

	"github.com/oncegate/oncegate/client"
)

// The button was pressed for cart 4711. However often this runs, before and
// after a crash, the cart becomes one order.
func ExampleClient_CreateOrder() {
	gw := gateway()
	dir, _ := os.MkdirTemp("", "keys-") // a program keeps it beside its own data
	defer func() { _ = os.RemoveAll(dir) }()

	keys, err := client.OpenFileKeys(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	shop, err := client.New(client.Options{BaseURL: gw.url, Token: gw.token("example-order"), Keys: keys})
	if err != nil {
		fmt.Println(err)
		return
	}
	line := client.Line{SKU: "potsticker", Quantity: 2, Amount: "39.80"}
	first, err := shop.CreateOrder(context.Background(), "cart 4711", line)
	fmt.Println(first.Order.Amount, "replayed:", first.Replayed, err)

	again, err := shop.CreateOrder(context.Background(), "cart 4711", line)
	fmt.Println(again.Order.Amount, "replayed:", again.Replayed, err)
	fmt.Println("one order:", first.Order.ID == again.Order.ID)
	// Output:
	// 39.80 replayed: false <nil>
	// 39.80 replayed: true <nil>
	// one order: true
}

// The network loses the answer to the first attempt. The client does not know
// whether there is an order, and need not: the same key finds out.
func ExampleClient_CreateOrder_lostAnswer() {
	gw := gateway()
	var requests atomic.Int64
	network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			gw.handler().ServeHTTP(httptest.NewRecorder(), r) // it is ordered,
			panic(http.ErrAbortHandler)                       // and nobody hears of it
		}
		gw.handler().ServeHTTP(w, r)
	}))
	defer network.Close()
	dir, _ := os.MkdirTemp("", "keys-")
	defer func() { _ = os.RemoveAll(dir) }()

	keys, _ := client.OpenFileKeys(dir)
	shop, _ := client.New(client.Options{BaseURL: network.URL, Token: gw.token("example-lost"), Keys: keys})
	receipt, err := shop.CreateOrder(context.Background(), "cart 4712", client.Line{SKU: "tea", Quantity: 1, Amount: "5.00"})
	fmt.Println("attempts:", receipt.Attempts, "replayed:", receipt.Replayed, err)
	// Output:
	// attempts: 2 replayed: true <nil>
}

// A refusal is remembered with its key, so that a late copy of the request
// cannot turn it into an order. Trying again is a new intent and needs a new
// key, and the refusal says whether that is safe.
func ExampleClient_Renew() {
	gw := gateway()
	dir, _ := os.MkdirTemp("", "keys-")
	defer func() { _ = os.RemoveAll(dir) }()

	ctx := context.Background()
	keys, _ := client.OpenFileKeys(dir)
	shop, _ := client.New(client.Options{BaseURL: gw.url, Token: gw.token("example-renew"), Keys: keys})

	_, err := shop.CreateOrder(ctx, "cart 4713", client.Line{SKU: "caviar", Quantity: 1, Amount: "5000.00"})
	if problem, ok := errors.AsType[*client.Problem](err); ok {
		fmt.Println(problem.Code, "safe to use a new key:", problem.SafeNewKey)
	}
	if err := shop.Renew(ctx, "cart 4713", err); err != nil { // the customer asked for it
		fmt.Println(err)
	}
	receipt, err := shop.CreateOrder(ctx, "cart 4713", client.Line{SKU: "tea", Quantity: 1, Amount: "5.00"})
	fmt.Println(receipt.Order.SKU, err)
	// Output:
	// INSUFFICIENT_BALANCE safe to use a new key: true
	// tea <nil>
}

// When patience ends first, the order may exist all the same. The key is kept:
// calling again, today or after a restart, settles it.
func ExampleUnsettledError() {
	down := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	defer down.Close()
	dir, _ := os.MkdirTemp("", "keys-")
	defer func() { _ = os.RemoveAll(dir) }()

	keys, _ := client.OpenFileKeys(dir)
	shop, _ := client.New(client.Options{
		BaseURL:  down.URL,
		Token:    func(context.Context) (string, error) { return "token", nil },
		Keys:     keys,
		Patience: 50_000_000, // 50 ms
	})
	_, err := shop.CreateOrder(context.Background(), "cart 4714", client.Line{SKU: "tea", Quantity: 1, Amount: "5.00"})
	fmt.Println("send it again later:", errors.Is(err, client.ErrUnsettled))
	fmt.Println(shop.Renew(context.Background(), "cart 4714", err))
	// Output:
	// send it again later: true
	// client: the key stays: a new one could make a second order
}
