//go:build unix

package bench

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/oncegate/oncegate/loadtest/drive"
)

// orderBody is what every side is asked for.
const orderBody = `{"sku":"potsticker","quantity":2,"amount":"39.80"}`

const requestTimeout = 20 * time.Second

// poster sends orders to an address.
type poster struct{ addr string }

func newPoster(addr string) poster { return poster{addr} }

// worker returns a worker with a connection of its own. Next says who orders
// with which key.
func (p poster) worker(ctx context.Context, next func() (drive.Identity, string), right func(*answer) error) worker {
	k := &connection{addr: p.addr}
	unhook := context.AfterFunc(ctx, k.interrupt)
	return worker{
		step: func(ctx context.Context) error {
			who, key := next()
			if err := k.post(ctx, &request{who, key, orderBody}); err != nil {
				return err
			}
			return right(&k.answer)
		},
		close: func() { unhook(); k.close() },
	}
}

// connection asks for orders, one after another, and reads of each answer what
// the bench has to know. It shares the processors with what it measures, so it
// is as small as an HTTP client can be: a general one costs about as much as a
// bare server does.
type connection struct {
	addr   string
	mu     sync.Mutex // guards the change of conn, which interrupt looks at
	conn   net.Conn   // nil at first, and after a fault
	out    []byte
	answer answer
}

// request is one order that is asked for.
type request struct {
	who  drive.Identity
	key  string
	body string
}

func (k *connection) dial(ctx context.Context) error {
	conn, err := (&net.Dialer{Timeout: requestTimeout, KeepAlive: -1}).DialContext(ctx, "tcp", k.addr)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	k.use(conn)
	return nil
}

func (k *connection) use(conn net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.conn = conn
}

// interrupt makes whoever waits for an answer give up.
func (k *connection) interrupt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conn != nil {
		_ = k.conn.Close() // the one who waits has an error of his own
	}
}

func (k *connection) close() {
	if k.conn != nil {
		_ = k.conn.Close() // nothing is under way
		k.use(nil)
	}
}

// post sends one order, once. After a fault the next one gets a new connection.
func (k *connection) post(ctx context.Context, r *request) error {
	if k.conn == nil {
		if err := k.dial(ctx); err != nil {
			return err
		}
	}
	err := k.exchange(r)
	if err != nil || k.answer.last {
		k.close()
	}
	return err
}

func (k *connection) exchange(r *request) error {
	if err := k.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return fmt.Errorf("connection: %w", err)
	}
	k.out = append(k.out[:0], "POST /api/orders HTTP/1.1\r\nHost: bench\r\nAuthorization: "...)
	k.out = append(k.out, r.who.Token...) // with its scheme
	k.out = append(k.out, "\r\nIdempotency-Key: "...)
	k.out = append(k.out, r.key...)
	k.out = append(k.out, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	k.out = fmt.Appendf(k.out, "%d\r\n\r\n%s", len(r.body), r.body)
	if _, err := k.conn.Write(k.out); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return k.answer.read(k.conn)
}

// made accepts an order that was made just now.
func made(a *answer) error { return a.check(false) }

// replayed accepts an order that was made before.
func replayed(a *answer) error { return a.check(true) }
