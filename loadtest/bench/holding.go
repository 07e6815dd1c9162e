//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// atOnce is how many connections are opened, or orders made, side by side where
// the speed is not what is measured.
const atOnce = 64

// everyone calls do for each number below n, some at a time, until one fails.
func everyone(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, atOnce) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// held are connections that are open and idle, as those of a proxy in front are:
// each has asked for something before.
type held struct{ all []net.Conn }

// hold opens so many. What was opened is to be closed, also after an error.
func hold(ctx context.Context, addr string, n int) (*held, error) {
	h := &held{all: make([]net.Conn, n)}
	err := everyone(ctx, n, func(ctx context.Context, i int) error {
		conn, err := (&net.Dialer{Timeout: requestTimeout, KeepAlive: -1}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		h.all[i] = conn
		if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
			return fmt.Errorf("connection: %w", err)
		}
		if _, err := conn.Write([]byte("GET /livez HTTP/1.1\r\nHost: bench\r\n\r\n")); err != nil {
			return fmt.Errorf("send: %w", err)
		}
		var a answer
		if err := a.read(conn); err != nil {
			return err
		}
		if a.last {
			return errors.New("the gateway does not keep connections")
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("open %d connections: %w", n, err)
	}
	return h, err
}

func (h *held) close() {
	for _, conn := range h.all {
		if conn != nil {
			_ = conn.Close() // nothing is under way
		}
	}
	h.all = nil
}
