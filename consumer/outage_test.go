//go:build unix

package consumer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

func TestBrokerThatIsKilledAndComesBackLosesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, testserver.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always"))
	s.claimAfter = soon
	l := newLedger()
	var ids []order.ID
	publish := func(n int) {
		for range n {
			id := newID()
			ids = append(ids, id)
			l.place(id)
			s.add("message_id", "evt-"+id.String(), "payload", body(id))
		}
	}
	publish(50)
	arrived := make(chan struct{}, 1000)
	l.setBefore(func(order.PaymentMessage) error { arrived <- struct{}{}; return nil })
	s.consume(s.options(l, "a"))
	for range 10 {
		<-arrived
	}
	s.server.Kill()
	s.server.Restart()
	publish(50)
	s.eventually("all are acknowledged", s.settled)
	require.True(t, l.once(ids...))
	require.Empty(t, s.parked())

	s.server.Restart()
	publish(10)
	s.eventually("all are acknowledged", s.settled)
	require.True(t, l.once(ids...))
}

func TestGroupIsMadeAgainWhenTheBrokerForgotIt(t *testing.T) {
	t.Parallel()
	s, before, after := newScene(t, testserver.StartRedis(t)), newID(), newID()
	l := newLedger(before, after)
	s.publish("evt_1", body(before))
	s.consume(s.options(l, "a"))
	s.eventually("the first is handled", func() bool { return l.once(before) && s.settled() })
	s.server.Restart()
	s.add("message_id", "evt_2", "payload", body(after))
	s.eventually("the next is handled", func() bool { return l.once(after) && s.settled() })
}

func TestConsumerWaitsForABrokerThatIsAway(t *testing.T) {
	t.Parallel()
	s, id := newScene(t, testserver.StartRedis(t)), newID()
	l := newLedger(id)
	s.server.Kill()
	s.consume(s.options(l, "a"))
	s.server.Restart()
	s.add("message_id", "evt_1", "payload", body(id))
	s.eventually("it is handled", func() bool { return l.once(id) && s.settled() })
}

func TestFrozenBrokerDelaysAndLosesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, testserver.StartRedis(t))
	s.claimAfter = soon
	l := newLedger()
	var ids []order.ID
	for range 20 {
		id := newID()
		ids = append(ids, id)
		l.place(id)
		s.add("message_id", "evt-"+id.String(), "payload", body(id))
	}
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	l.setBefore(func(order.PaymentMessage) error { arrived <- struct{}{}; <-release; return nil })
	s.consume(s.options(l, "a"))
	<-arrived
	<-arrived // one per worker
	s.server.Stop()
	close(release) // the acknowledgements meet a server that does not answer
	s.eventually("the messages in hand take effect", func() bool { return l.appliedCount() == 2 })
	s.server.Cont()
	s.eventually("all are acknowledged", s.settled)
	require.True(t, l.once(ids...))
	require.Empty(t, s.parked())
}
