package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxQueued bounds the commands that wait for their turn.
	maxQueued = 8192
	// maxTogether and enoughBytes bound those that are sent together, and so the
	// time until the first of them has its reply: a bundle that has reached one of
	// them takes no more.
	maxTogether = 512
	enoughBytes = 128 << 10
)

var (
	errQueueFull   = errors.New("too many commands wait for Redis")
	errNotSent     = errors.New("not sent")
	errInterrupted = errors.New("the sender of this command was interrupted")
)

// combined sends the commands of concurrent callers to one Redis together. There
// is no goroutine for it: whoever finds nobody sending sends what has gathered, his
// own command among it, and then calls the next one. (Flat combining: Hendler,
// Incze, Shavit, Tzafrir, SPAA 2010.) So a lone command goes out at once, and under
// load a round trip is shared by all who came during the one before. That is a
// third less processor time for a command than go-redis' own pipeliner takes,
// which the nodes of a Cluster still have: one stream for each of them, so that a
// dead node holds up nobody else's commands.
//
// Nobody waits longer than his limit: what is under way ends with the limit of
// the first of it, who came before all that wait for it. A caller who leaves holds
// up nobody; the one who sends stays to the end.
type combined struct {
	client *redis.Client

	mu      sync.Mutex
	sending bool      // somebody sends, or is about to
	waiting []*bundle // in the order in which they will be sent
	queued  int
}

// bundle is commands that are sent together.
type bundle struct {
	cmds    []redis.Cmder // nil for one whose caller left before it was sent
	bytes   int           // of their arguments
	callers int           // who have not left; one that nobody waits for is not sent
	until   time.Time
	lead    chan struct{} // one of its callers takes the token, and sends it
	done    chan struct{} // closed when each has its reply, or its error
}

func (c *combined) send(ctx context.Context, limit time.Duration, cmd redis.Cmder) error {
	b, place, leads, err := c.join(cmd, limit)
	switch {
	case err != nil:
		return err
	case leads:
		c.lead(b) //nolint:contextcheck // what he sends is not only his
		return cmd.Err()
	}
	select {
	case <-b.done:
		return cmd.Err()
	case <-b.lead:
		c.lead(b) //nolint:contextcheck // as above
		return cmd.Err()
	case <-ctx.Done():
		if c.leave(b, place) {
			return fmt.Errorf("%w: %w", errNotSent, ctx.Err())
		}
		return ctx.Err()
	}
}

// join puts a command into the last bundle that waits. Its caller leads when
// nobody else would.
func (c *combined) join(cmd redis.Cmder, limit time.Duration) (b *bundle, place int, leads bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queued >= maxQueued {
		return nil, 0, false, errQueueFull
	}
	if n := len(c.waiting); n > 0 && !c.waiting[n-1].full() {
		b = c.waiting[n-1]
	} else {
		b = &bundle{until: time.Now().Add(limit), lead: make(chan struct{}, 1), done: make(chan struct{})}
		c.waiting = append(c.waiting, b)
	}
	b.cmds = append(b.cmds, cmd)
	b.bytes += argumentBytes(cmd)
	b.callers++
	c.queued++
	leads = !c.sending
	c.sending = true
	return b, len(b.cmds) - 1, leads, nil
}

func (b *bundle) full() bool { return len(b.cmds) >= maxTogether || b.bytes >= enoughBytes }

// argumentBytes is how long the arguments of a command are that can be long.
func argumentBytes(cmd redis.Cmder) (n int) {
	for _, arg := range cmd.Args() {
		switch arg := arg.(type) {
		case string:
			n += len(arg)
		case []byte:
			n += len(arg)
		}
	}
	return n
}

// leave takes a command back, if it is not being sent yet.
func (c *combined) leave(b *bundle, place int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.waiting, b) {
		return false
	}
	b.cmds[place] = nil
	if b.callers--; b.callers > 0 {
		return true
	}
	c.waiting = slices.DeleteFunc(c.waiting, func(w *bundle) bool { return w == b })
	c.queued -= len(b.cmds)
	select {
	case <-b.lead: // all who were called have left
		c.call()
	default:
	}
	return true
}

// lead sends a bundle, which is the first of those that wait.
func (c *combined) lead(b *bundle) {
	runtime.Gosched() // who is about to come takes part
	cmds := c.take(b)
	answered := false
	defer func() {
		if !answered { // it panicked: nobody else may take his command for carried out
			fail(cmds, errInterrupted)
		}
		close(b.done)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.call()
	}()
	c.exchange(b.until, cmds)
	answered = true
}

// take closes the first bundle to newcomers.
func (c *combined) take(b *bundle) []redis.Cmder {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[0] = nil
	c.waiting = c.waiting[1:]
	c.queued -= len(b.cmds)
	cmds := b.cmds[:0]
	for _, cmd := range b.cmds {
		if cmd != nil {
			cmds = append(cmds, cmd)
		}
	}
	return cmds
}

// call has the next bundle sent by one of its callers. With the lock.
func (c *combined) call() {
	if len(c.waiting) > 0 {
		c.waiting[0].lead <- struct{}{}
		return
	}
	c.sending = false
	c.waiting = nil
}

// exchange sends commands and reads their replies. It belongs to all of them, so
// it ends with its own limit and not with the request of the one who sends.
func (c *combined) exchange(until time.Time, cmds []redis.Cmder) {
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	if len(cmds) == 1 {
		_ = c.client.Process(ctx, cmds[0]) // it keeps its error
		return
	}
	p := c.client.Pipeline()
	_ = p.BatchProcess(ctx, cmds...)
	_, err := p.Exec(ctx) // each keeps its own, but for one case:
	if err != nil && !slices.ContainsFunc(cmds, failed) {
		fail(cmds, err) // Redis refused the connection, and none was sent
	}
}

func failed(cmd redis.Cmder) bool { return cmd.Err() != nil }

func fail(cmds []redis.Cmder, err error) {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}
