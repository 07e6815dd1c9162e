package consumer

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
)

// silent is the address of somebody who takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return listener.Addr().String()
}

// waits is a publisher that waits for an answer to each message.
type waits struct {
	wires  *wires
	addr   string
	closed atomic.Bool
}

func (p *waits) Publish(string, ...*message.Message) error {
	conn, err := p.wires.Dial("tcp", p.addr)
	if err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return errors.Join(err, conn.Close())
}

func (p *waits) Close() error {
	p.closed.Store(true)
	return nil
}

func TestAPublicationEndsWithTheDeadlineOfItsMessage(t *testing.T) {
	t.Parallel()
	cord := &wires{dialing: amqpDialTimeout}
	inner := &waits{wires: cord, addr: silent(t)}
	p := &boundedPublisher{inner: inner, wires: cord}
	m := message.NewMessage("m", nil)
	late := errors.New("late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, late)
	defer cancel()
	m.SetContext(ctx)
	err := p.Publish("parked", m)
	require.ErrorIs(t, err, late)
	require.ErrorContains(t, err, "has not confirmed it in time")
	p.working.Wait() // what it waited for is free
	require.Empty(t, cord.open)
	require.NoError(t, p.Close())
	require.True(t, inner.closed.Load())
	require.ErrorContains(t, p.Publish("parked", m), "closed")
}

// What is not bounded by a message is by the end.
func TestAPublisherClosesWhileItsBrokerIsSilent(t *testing.T) {
	t.Parallel()
	cord := &wires{dialing: amqpDialTimeout}
	p := &boundedPublisher{inner: &waits{wires: cord, addr: silent(t)}, wires: cord}
	done := make(chan error, 1)
	go func() { done <- p.Publish("parked", message.NewMessage("m", nil)) }()
	require.Eventually(t, func() bool { cord.mu.Lock(); defer cord.mu.Unlock(); return len(cord.open) == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, p.Close())
	require.Error(t, <-done)
}

func TestWiresThatAreCutCanBeOpenedAgainAndThoseThatAreClosedCannot(t *testing.T) {
	t.Parallel()
	w, addr := &wires{dialing: amqpDialTimeout}, silent(t)
	for _, free := range []func(){w.cut, w.close} {
		conn, err := w.Dial("tcp", addr)
		require.NoError(t, err)
		read := make(chan error, 1)
		go func() { _, err := conn.Read(make([]byte, 1)); read <- err }()
		free()
		require.ErrorIs(t, <-read, net.ErrClosed)
	}
	_, err := w.Dial("tcp", addr)
	require.ErrorIs(t, err, errHungUp)
}

func TestAReadIsNotWaitedForLongerThanItsLimit(t *testing.T) {
	t.Parallel()
	var limit atomic.Int64
	limit.Store(int64(time.Hour))
	w := &wires{dialing: amqpDialTimeout, readLimit: func(now time.Time) time.Time { return now.Add(time.Duration(limit.Load())) }}
	defer w.close()
	conn, err := w.Dial("tcp", silent(t))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Millisecond)))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a shorter deadline is left alone")
	limit.Store(int64(time.Millisecond))
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Hour)))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	limit.Store(int64(time.Hour))
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Hour)))
	read := make(chan error, 1)
	go func() { _, err := conn.Read(make([]byte, 1)); read <- err }()
	limit.Store(int64(time.Millisecond))
	w.hasten()
	require.ErrorIs(t, <-read, os.ErrDeadlineExceeded, "one that had begun, too")
}

// One after the other they would hold their messages that many times as long.
func TestWhoWaitsForABrokerThatIsAwaySharesTheAttempt(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	opening, release := make(chan struct{}), make(chan struct{})
	l := newLazyPublisher(func() (message.Publisher, error) {
		opened.Add(1)
		close(opening)
		<-release
		return nil, errors.New("away")
	})
	var publishing sync.WaitGroup
	publishing.Go(func() { _ = l.Publish("t") })
	<-opening
	a := l.attempt() // as whoever comes meanwhile does
	close(release)
	_, err := a.result()
	require.EqualError(t, err, "away")
	publishing.Wait()
	require.EqualValues(t, 1, opened.Load())
	require.NotSame(t, a, l.attempt(), "the next tries again")
}

func TestWhatWaitsForAnAnswerInVainIsToldOf(t *testing.T) {
	t.Parallel()
	w, mute := &wires{}, silent(t)
	told := make(chan error, 2)
	w.watch(func(addr string, err error) {
		w.cut() // whoever is told may free the others
		require.Equal(t, mute, addr)
		told <- err
	})
	late, err := w.Dial("tcp", mute)
	require.NoError(t, err)
	require.NoError(t, late.SetReadDeadline(time.Now()))
	_, err = late.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorIs(t, <-told, os.ErrDeadlineExceeded)
	_, err = late.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	require.Empty(t, told, "one that has hung up waits for nothing")
}
