package cache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

func TestCancelledCallerDisturbsNobody(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		addr, arrived, letGo := held(t, testserver.Redis(t).Addr, "SET")
		defer letGo()
		r := open(t, addr, ways)
		ctx, cancel := context.WithCancel(t.Context())
		user := somebody(t)
		leaver, stayer := make(chan order.Admission, 1), make(chan order.Admission, 1)
		go func() { leaver <- r.Admit(ctx, attempt(user, "left")) }()
		<-arrived
		go func() { stayer <- r.Admit(t.Context(), attempt(user, "stayed")) }()
		cancel()
		if _, ok := r.guard.pipe.(stream); ok { // he who sends reads until the deadline
			adm := <-leaver
			require.Equal(t, order.Bypassed, adm.Advice)
			require.InDelta(t, 1, r.bypassed(t, reasonCancelled), 0)
			letGo()
			adm.Ticket.Finish(ctx, released())
			require.Eventually(t, func() bool { return !r.has(t, user, "left") }, hung, 10*time.Millisecond)
		}
		letGo()
		stayed := <-stayer
		require.Equal(t, order.Ours, stayed.Advice)
		stayed.Ticket.Finish(t.Context(), created())
		require.EqualValues(t, kindReceipt, r.entry(t, user, "stayed").kind)
	})
}

// Replies that come after their time-out must never be taken for another's.
func TestLateRepliesAreNeverAnothersAnswer(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		proxy := faultproxy.NewRedis(t, testserver.Redis(t).Addr)
		r := open(t, proxy.Addr(), withOpTimeout(hurried, func(s *settings) {
			ways(s)
			guardOnly(s)
			s.tuning.BreakerFailures = 1 << 20
		}))
		var mu sync.Mutex
		n := map[bool]int{} // of the marks, and of all else: some of either are late
		proxy.OnCommand(func(c faultproxy.Command) faultproxy.Action {
			mark := c.Name == "SET" && c.Args[2] == "nx"
			mu.Lock()
			defer mu.Unlock()
			if n[mark]++; n[mark]%67 == 0 {
				return faultproxy.DelayReply{For: 3 * hurried / 2}
			}
			return faultproxy.Pass
		})
		var callers sync.WaitGroup
		var seen atomic.Int32
		for i := range 16 {
			callers.Go(func() {
				user := fmt.Sprint(somebody(t), i)
				for k := range 15 {
					key := order.Key(fmt.Sprint(k))
					end := created()
					end.Receipt.Response.Location = user + string(key)
					for range 2 {
						adm := r.Admit(t.Context(), attempt(user, key))
						if adm.Advice == order.Seen {
							seen.Add(1)
							if got := adm.Receipt.Response.Location; got != user+string(key) {
								t.Errorf("%s %s got the answer of %s", user, key, got)
							}
						}
						adm.Ticket.Finish(t.Context(), end)
					}
				}
			})
		}
		within(t, time.Minute, callers.Wait)
		require.Positive(t, seen.Load())
		require.Positive(t, r.bypassed(t, reasonTimeout))
		require.Zero(t, r.bypassed(t, reasonForged)+r.bypassed(t, reasonUnreadable))
	})
}

// Who hangs up while his mark is queued in a stream has it released behind it,
// although by then a lone command would be faster: his next attempt, a moment
// later, must not meet an orphan.
func TestReleaseDoesNotOvertakeTheMarkOfACallerWhoLeft(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.NewRedis(t, testserver.Redis(t).Addr)
	r := open(t, proxy.Addr(), nil)
	streams, err := newStreams(r.client) // as a Cluster has them; what is combined is sent in order
	require.NoError(t, err)
	r.guard.pipe = streams
	user := somebody(t)
	othersGo, markGoes := make(chan struct{}), make(chan struct{})
	arrived := make(chan struct{}, aloneAtOnce+1)
	marked := r.names.name(user, "left")
	proxy.OnCommand(func(c faultproxy.Command) faultproxy.Action {
		if c.Name != "SET" || c.Args[2] != "nx" {
			return faultproxy.Pass
		}
		arrived <- struct{}{}
		if c.Args[0] == marked {
			return faultproxy.DelayForward{Until: markGoes}
		}
		return faultproxy.DelayForward{Until: othersGo}
	})
	var others sync.WaitGroup
	for i := range aloneAtOnce { // so that the next one shares
		others.Go(func() {
			r.Admit(t.Context(), attempt(user, order.Key(fmt.Sprint(i)))).Ticket.Finish(t.Context(), created())
		})
		<-arrived
	}
	ctx, hangUp := context.WithCancel(t.Context())
	admitted := make(chan order.Admission, 1)
	go func() { admitted <- r.Admit(ctx, attempt(user, "left")) }()
	<-arrived
	hangUp()
	adm := <-admitted
	require.Equal(t, order.Bypassed, adm.Advice)
	close(othersGo)
	others.Wait()

	finished := make(chan struct{})
	go func() { defer close(finished); adm.Ticket.Finish(ctx, released()) }()
	select {
	case <-finished:
		require.FailNow(t, "it was released before it was there")
	case <-time.After(50 * time.Millisecond): // long enough to be overtaken in
	}
	close(markGoes)
	<-finished
	require.False(t, r.has(t, user, "left"))
}
