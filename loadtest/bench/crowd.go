//go:build unix

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oncegate/oncegate/loadtest/measure"
)

// crowd are clients that ask for the same at once, each over a connection that
// is ready.
type crowd struct{ clients []*connection }

// gather connects the clients, in turns to each address, and warms up the
// connections with a request that is known.
func gather(ctx context.Context, addrs []string, n int, warm request) (*crowd, error) {
	c := &crowd{clients: make([]*connection, n)}
	for i := range c.clients {
		c.clients[i] = &connection{addr: addrs[i%len(addrs)]}
	}
	err := everyone(ctx, n, func(ctx context.Context, i int) error {
		if err := c.clients[i].post(ctx, &warm); err != nil {
			return err
		}
		return replayed(&c.clients[i].answer)
	})
	if err != nil {
		err = fmt.Errorf("connect %d clients: %w", n, err)
	}
	return c, err
}

func (c *crowd) close() {
	for _, k := range c.clients {
		k.close()
	}
}

// interrupt makes all who wait for an answer give up.
func (c *crowd) interrupt() {
	for _, k := range c.clients {
		k.interrupt()
	}
}

// cry is what one client of a storm heard.
type cry struct {
	first   measure.Outcome // the first answer's
	heard   time.Duration   // until then
	served  time.Duration   // until it had the order
	created bool            // the order was made for this one
	body    string
	err     error
}

// ask lets all ask at once, and those that are told to come again do so when
// they were told to, until each has the order.
func (c *crowd) ask(ctx context.Context, r request) []cry {
	unhook := context.AfterFunc(ctx, c.interrupt)
	defer unhook()
	heard := make([]cry, len(c.clients))
	var ready, done sync.WaitGroup
	ready.Add(len(c.clients))
	gun := make(chan struct{})
	var begin time.Time
	for i, k := range c.clients {
		done.Go(func() {
			ready.Done()
			<-gun
			heard[i].ask(ctx, k, &r, begin)
		})
	}
	ready.Wait()
	begin = time.Now()
	close(gun)
	done.Wait()
	return heard
}

const stormPatience = 30 * time.Second

func (c *cry) ask(ctx context.Context, k *connection, r *request, begin time.Time) {
	for attempt := 0; ; attempt++ {
		if c.err = k.post(ctx, r); c.err != nil {
			return
		}
		got, at := k.answer.outcome(), time.Since(begin)
		if attempt == 0 {
			c.first, c.heard = got, at
		}
		switch got {
		case measure.Created, measure.Replayed:
			c.served, c.created, c.body = at, got == measure.Created, string(k.answer.body)
			return
		case measure.InProgress, measure.Unavailable:
		default:
			c.err = fmt.Errorf("status %d: %.300s", k.answer.status, k.answer.body)
			return
		}
		pause := k.answer.pause()
		if pause == 0 {
			c.err = fmt.Errorf("status %d without a time to come again: %.300s", k.answer.status, k.answer.body)
			return
		}
		if at > stormPatience || ctx.Err() != nil {
			c.err = fmt.Errorf("still no order after %v: status %d: %.300s", at.Round(time.Second), k.answer.status, k.answer.body)
			return
		}
		sleepUntil(ctx, time.Now().Add(pause))
	}
}

// pause is how long the answer asks to wait; 0 when it does not.
func (a *answer) pause() time.Duration {
	var p struct {
		RetryAfterMS int64 `json:"retry_after_ms"`
	}
	if json.Unmarshal(a.body, &p) == nil && p.RetryAfterMS > 0 {
		return time.Duration(p.RetryAfterMS) * time.Millisecond
	}
	return time.Duration(a.after) * time.Second
}

var (
	errSeveralOrders = errors.New("the order was not made exactly once")
	errOtherAnswer   = errors.New("two clients have different answers")
)

// agree is the promise of a storm: one order, and the same bytes for everybody.
func agree(all []cry) error {
	made := 0
	for i := range all {
		c := &all[i]
		if c.err != nil {
			return c.err
		}
		if c.created {
			made++
		}
		if c.body != all[0].body {
			return fmt.Errorf("%w: %.300s and %.300s", errOtherAnswer, all[0].body, c.body)
		}
	}
	if made != 1 {
		return fmt.Errorf("%w: %d times among %d clients", errSeveralOrders, made, len(all))
	}
	return nil
}
