package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// gate is a hook of a client. It tells of each exchange how many commands it
// is for, and holds it until it is let through; a panic may come of it.
type gate struct {
	arrived chan int
	let     chan error // nil: go on; errPanic: panic; else: fail with it
}

var errPanic = errors.New("panic")

func newGate() *gate { return &gate{arrived: make(chan int), let: make(chan error)} }

func (g *gate) hold(n int) error {
	g.arrived <- n
	err := <-g.let
	if errors.Is(err, errPanic) {
		panic(err)
	}
	return err
}

func (*gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "set" { // the client's own, on a new connection
			return next(ctx, cmd)
		}
		if err := g.hold(1); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() != "set" {
			return next(ctx, cmds)
		}
		if err := g.hold(len(cmds)); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
	}
}

// desk is a combined pipe with a gate before its Redis, and callers.
type desk struct {
	*combined
	*gate
	t    *testing.T
	all  sync.WaitGroup
	mu   sync.Mutex
	ends map[string]error
}

func openDesk(t *testing.T) *desk {
	t.Helper()
	client, err := OpenClient(ClientOptions{Addrs: []string{startMini(t).Addr()}, OpTimeout: patient})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	d := &desk{gate: newGate(), t: t, ends: map[string]error{}}
	d.combined = &combined{client: client.(*redis.Client)}
	client.AddHook(d.gate)
	return d
}

// openBusyDesk is one whose first command is held on its way.
func openBusyDesk(t *testing.T) *desk {
	t.Helper()
	d := openDesk(t)
	d.call(t.Context(), "first")
	require.Equal(t, 1, d.held())
	return d
}

// call has somebody send a command.
func (d *desk) call(ctx context.Context, name string) {
	d.all.Go(func() {
		err := errPanic
		defer func() {
			_ = recover()
			d.mu.Lock()
			defer d.mu.Unlock()
			d.ends[name] = err
		}()
		err = d.send(ctx, patient, command(ctx, "set", name, name, "get"))
	})
}

// waiting waits until so many commands wait for their turn.
func (d *desk) waiting(n int) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		d.combined.mu.Lock()
		defer d.combined.mu.Unlock()
		return d.queued == n
	}, hung, time.Millisecond)
}

// ended waits until a caller has his answer, and returns it.
func (d *desk) ended(name string) error {
	d.t.Helper()
	require.Eventually(d.t, func() bool { return d.has(name) }, hung, time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ends[name]
}

func (d *desk) has(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.ends[name]
	return ok
}

// held is how many commands are in the next exchange, which is held.
func (d *desk) held() int {
	d.t.Helper()
	select {
	case n := <-d.arrived:
		return n
	case <-time.After(hung):
		require.FailNow(d.t, "nobody sends")
		return 0
	}
}

func TestWhoComesDuringAnExchangeSharesTheNextOne(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	d.call(t.Context(), "first")
	require.Equal(t, 1, d.held(), "a lone command goes out at once")
	for i := range 20 {
		d.call(t.Context(), fmt.Sprint(i))
	}
	d.waiting(20)
	d.let <- nil
	require.Equal(t, 20, d.held())
	d.let <- nil
	d.all.Wait()
	for name, err := range d.ends {
		require.ErrorIs(t, err, redis.Nil, name)
	}
	d.call(t.Context(), "first")
	require.Equal(t, 1, d.held(), "when it is quiet again")
	d.let <- nil
	d.all.Wait()
	require.NoError(t, d.ends["first"], "it was there")
}

func TestExchangeHasABound(t *testing.T) {
	t.Parallel()
	d := openBusyDesk(t)
	for i := range maxTogether + 1 {
		d.call(t.Context(), fmt.Sprint(i))
	}
	d.waiting(maxTogether + 1)
	d.let <- nil
	require.Equal(t, maxTogether, d.held())
	d.let <- nil
	require.Equal(t, 1, d.held())
	d.let <- nil
	d.all.Wait()
	require.Len(t, d.ends, 1+maxTogether+1)
}

func TestWhoLeavesBeforeHisCommandIsSentTakesItBack(t *testing.T) {
	t.Parallel()
	d := openBusyDesk(t)
	gone, leave := context.WithCancel(t.Context())
	d.call(gone, "gone")
	d.waiting(1)
	d.call(t.Context(), "patient")
	d.waiting(2)
	leave()
	err := d.ended("gone")
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, mayHaveRun(err))
	d.let <- nil
	require.Equal(t, 1, d.held())
	d.let <- nil
	d.all.Wait()
	require.ErrorIs(t, d.ends["patient"], redis.Nil)
	require.ErrorIs(t, d.client.Get(t.Context(), "gone").Err(), redis.Nil, "it was never set")
}

func TestWhoLeavesDuringHisExchangeIsNotHeldUp(t *testing.T) {
	t.Parallel()
	d := openBusyDesk(t)
	gone, leave := context.WithCancel(t.Context())
	d.call(gone, "gone")
	d.call(gone, "gone too")
	d.call(t.Context(), "patient")
	d.waiting(3)
	d.let <- nil
	require.Equal(t, 3, d.held())
	leave()
	require.Eventually(t, func() bool { return d.has("gone") || d.has("gone too") }, hung, time.Millisecond, "one of them may be who sends")
	d.let <- nil
	d.all.Wait()
	require.ErrorIs(t, d.ends["patient"], redis.Nil)
	for _, name := range []string{"gone", "gone too"} {
		if err := d.ends[name]; errors.Is(err, context.Canceled) {
			require.True(t, mayHaveRun(err), "it is under way")
		} else {
			require.ErrorIs(t, err, redis.Nil, "who sends stays to the end")
		}
	}
}

// When all who waited have left, nobody waits for them to send.
func TestNobodyWaitsForThoseWhoHaveLeft(t *testing.T) {
	t.Parallel()
	d := openBusyDesk(t)
	gone, leave := context.WithCancel(t.Context())
	for i := range maxTogether {
		d.call(gone, fmt.Sprint(i))
	}
	d.waiting(maxTogether)
	d.call(t.Context(), "stayed")
	d.waiting(maxTogether + 1)
	leave()
	for i := range maxTogether {
		require.ErrorIs(t, d.ended(fmt.Sprint(i)), errNotSent)
	}
	d.waiting(1)
	d.let <- nil
	require.Equal(t, 1, d.held())
	d.let <- nil
	d.all.Wait()
	require.ErrorIs(t, d.ends["stayed"], redis.Nil)
}

func TestWhoIsCalledAndHasLeftCallsTheNextOne(t *testing.T) {
	t.Parallel()
	c := &combined{}
	join := func() *bundle {
		b, place, _, err := c.join(command(t.Context(), "ping"), patient)
		require.NoError(t, err)
		require.Zero(t, place)
		b.cmds = slices.Grow(b.cmds, maxTogether)[:maxTogether] // full
		c.queued += maxTogether - 1
		return b
	}
	sent, left, next := join(), join(), join()
	c.take(sent)
	c.call()
	require.Len(t, left.lead, 1)
	require.True(t, c.leave(left, 0))
	require.Len(t, next.lead, 1)
	require.True(t, c.leave(next, 0))
	require.False(t, c.sending)
	require.Zero(t, c.queued)
	_, _, leads, err := c.join(command(t.Context(), "ping"), patient)
	require.NoError(t, err)
	require.True(t, leads)
}

func TestPanicOfTheOneWhoSendsIsNobodysSuccess(t *testing.T) {
	t.Parallel()
	d := openBusyDesk(t)
	for i := range 3 {
		d.call(t.Context(), fmt.Sprint(i))
	}
	d.waiting(3)
	d.let <- nil
	require.Equal(t, 3, d.held())
	d.let <- errPanic
	d.all.Wait()
	panics := 0
	for i := range 3 {
		err := d.ends[fmt.Sprint(i)]
		require.Error(t, err)
		require.True(t, mayHaveRun(err))
		if errors.Is(err, errPanic) {
			panics++
		} else {
			require.ErrorIs(t, err, errInterrupted)
		}
	}
	require.Equal(t, 1, panics)
	d.call(t.Context(), "next")
	require.Equal(t, 1, d.held(), "the others go on")
	d.let <- nil
	d.all.Wait()
}

func TestErrorOfAnExchangeIsEveryones(t *testing.T) {
	t.Parallel()
	d := openBusyDesk(t)
	for i := range 3 {
		d.call(t.Context(), fmt.Sprint(i))
	}
	d.waiting(3)
	d.let <- nil
	require.Equal(t, 3, d.held())
	d.let <- redis.ErrPoolTimeout
	d.all.Wait()
	for i := range 3 {
		require.ErrorIs(t, d.ends[fmt.Sprint(i)], redis.ErrPoolTimeout)
	}
}

func TestLargeCommandsAreNotPiledUp(t *testing.T) {
	t.Parallel()
	d := openBusyDesk(t)
	large := strings.Repeat("x", enoughBytes/2)
	for i := range 4 {
		d.call(t.Context(), fmt.Sprint(large, i))
	}
	d.waiting(4)
	for range 4 {
		d.let <- nil
		require.Equal(t, 1, d.held(), "a name and a value are enough")
	}
	d.let <- nil
	d.all.Wait()
}

func TestTooManyWhoWaitAreRefused(t *testing.T) {
	t.Parallel()
	d := openBusyDesk(t)
	gone, leave := context.WithCancel(t.Context())
	for i := range maxQueued {
		d.call(gone, fmt.Sprint(i))
	}
	d.waiting(maxQueued)
	d.call(t.Context(), "one more")
	require.ErrorIs(t, d.ended("one more"), errQueueFull)
	leave()
	close(d.let) // of everybody: who takes the token before he leaves sends what is left
	waited := make(chan struct{})
	go func() { defer close(waited); d.all.Wait() }()
	for {
		select {
		case <-d.arrived:
		case <-waited:
			return
		}
	}
}
