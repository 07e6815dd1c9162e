//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/wire"
)

// orderBody is what every side is asked for.
const orderBody = `{"sku":"potsticker","quantity":2,"amount":"39.80"}`

const requestTimeout = 20 * time.Second

// poster sends orders to an address.
type poster struct {
	target *url.URL
	body   []byte
}

func newPoster(addr string) *poster {
	return &poster{target: &url.URL{Scheme: "http", Host: addr}, body: []byte(orderBody)}
}

// worker returns a worker with a connection of its own, so that workers do not
// meet at a pool's lock. Next says who orders with which key.
func (p *poster) worker(ctx context.Context, next func() (drive.Identity, string), right func(*wire.Exchange) error) (worker, error) {
	client, err := wire.New(wire.Options{Target: p.target, Timeout: requestTimeout})
	if err != nil {
		return worker{}, err
	}
	unhook := context.AfterFunc(ctx, client.Close)
	fields := []wire.Field{{Name: "Authorization"}, {Name: "Idempotency-Key"}}
	request := wire.Request{Method: http.MethodPost, Path: "/api/orders", Fields: fields, Body: p.body}
	return worker{
		step: func(ctx context.Context) error {
			who, key := next()
			fields[0].Value, fields[1].Value = who.Token, key // the token with its scheme
			x := client.Do(ctx, &request, 0)
			return right(&x)
		},
		close: func() { unhook(); client.Close() },
	}, nil
}

// made accepts an order that was made just now.
func made(x *wire.Exchange) error { return check(x, false) }

// replayed accepts an order that was made before.
func replayed(x *wire.Exchange) error { return check(x, true) }

func check(x *wire.Exchange, again bool) error {
	switch {
	case x.Err != nil:
		return x.Err
	case x.Status != http.StatusCreated:
		return fmt.Errorf("status %d: %.300s", x.Status, x.Body)
	case len(x.Body) == 0:
		return errors.New("an empty answer")
	case (x.Header.Get("Idempotent-Replayed") == "true") != again:
		return fmt.Errorf("replayed is %t", !again)
	}
	return nil
}
