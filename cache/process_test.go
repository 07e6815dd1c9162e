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

func TestAThousandJoinersShareOneAnswer(t *testing.T) {
	t.Parallel()
	mini := startMini(t)
	r := open(t, mini.Addr(), nil)
	adm := r.admit(t, attempt("alice", "k"), order.Ours)
	asked := mini.CommandCount()
	var joiners sync.WaitGroup
	for range 1000 {
		joined := r.admit(t, attempt("alice", "k"), order.Joined)
		require.Nil(t, joined.Ticket)
		joiners.Go(func() {
			a, err := joined.Flight.Wait(t.Context())
			if err != nil || a.Kind != order.Created {
				t.Errorf("got %v, %v", a.Kind, err)
			}
		})
	}
	require.Equal(t, asked, mini.CommandCount(), "Redis is not asked about what this process knows")
	adm.Ticket.Finish(t.Context(), created())
	within(t, hung, joiners.Wait)
}

func TestOtherContentUnderARunningKeyIsToldWhoHasIt(t *testing.T) {
	t.Parallel()
	r := open(t, startMini(t).Addr(), nil)
	first := attempt("alice", "k")
	adm := r.admit(t, first, order.Ours)
	other := attempt("alice", "k")
	other.Digest[0]++
	require.Equal(t, order.Admission{Advice: order.Running, Layer: order.LayerProcess, Digest: first.Digest}, r.Admit(t.Context(), other))
	adm.Ticket.Finish(t.Context(), created())
	require.Equal(t, first.Digest, r.admit(t, other, order.Seen).Receipt.Digest)
}

func TestJoinerGivesUpWithItsOwnContext(t *testing.T) {
	t.Parallel()
	r := open(t, startMini(t).Addr(), nil)
	adm := r.admit(t, attempt("alice", "k"), order.Ours)
	joined := r.admit(t, attempt("alice", "k"), order.Joined)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := joined.Flight.Wait(ctx)
	require.ErrorIs(t, err, context.Canceled)
	adm.Ticket.Finish(t.Context(), created())
	_, err = joined.Flight.Wait(ctx)
	require.NoError(t, err, "an answer that is there is worth more than a context that is not")
}

func TestLocalReceiptExpires(t *testing.T) {
	t.Parallel()
	c := newClock()
	r := open(t, startMini(t).Addr(), func(s *settings) { s.options.Now = c.Now })
	r.admit(t, attempt("alice", "k"), order.Ours).Ticket.Finish(t.Context(), created())
	require.Equal(t, order.LayerProcess, r.admit(t, attempt("alice", "k"), order.Seen).Layer)
	c.move(DefaultTuning().LocalTTL)
	seen := r.admit(t, attempt("alice", "k"), order.Seen)
	require.Equal(t, order.LayerRedis, seen.Layer)
	seen.Ticket.Finish(t.Context(), order.End{})
}

// held is a proxy that holds the commands of a name until they are let go.
func held(t *testing.T, upstream, name string) (addr string, arrived <-chan struct{}, letGo func()) {
	t.Helper()
	proxy := faultproxy.NewRedis(t, upstream)
	seen, until := make(chan struct{}, 16), make(chan struct{})
	proxy.OnCommand(func(c faultproxy.Command) faultproxy.Action {
		if c.Name != name {
			return faultproxy.Pass
		}
		seen <- struct{}{}
		return faultproxy.DelayForward{Until: until}
	})
	return proxy.Addr(), seen, sync.OnceFunc(func() { close(until) })
}

// Between the answer to those who joined and the end of the write to Redis, the
// next attempt must meet the flight or the receipt, whatever the local memory.
func TestNobodyMeetsAnEmptyPlaceWhileRedisIsTold(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]func(*settings){
		"remembered": func(*settings) {},
		"forgotten":  func(s *settings) { s.tuning.LocalTTL = 0 },
		"too large":  func(s *settings) { s.options.LocalBytes = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testserver.StartRedis(t)
			proxy := faultproxy.NewRedis(t, server.Addr)
			r := open(t, proxy.Addr(), memory)
			adm := r.admit(t, attempt("alice", "k"), order.Ours)
			joined := r.admit(t, attempt("alice", "k"), order.Joined)

			arrived, until := make(chan struct{}), make(chan struct{})
			proxy.OnCommand(func(faultproxy.Command) faultproxy.Action {
				close(arrived)
				return faultproxy.DelayForward{Until: until}
			})
			finished := make(chan struct{})
			go func() { defer close(finished); adm.Ticket.Finish(t.Context(), created()) }()
			<-arrived
			a, err := wait(t, joined.Flight)
			require.NoError(t, err, "those who joined do not wait for Redis")
			require.Equal(t, order.Created, a.Kind)
			next := r.Admit(t.Context(), attempt("alice", "k"))
			require.Equal(t, order.LayerProcess, next.Layer)
			if next.Advice == order.Joined {
				a, err = wait(t, next.Flight)
				require.NoError(t, err)
				require.Equal(t, receipt(), a.Receipt)
			} else {
				require.Equal(t, order.Seen, next.Advice)
			}
			proxy.OnCommand(nil)
			close(until)
			<-finished
			require.EqualValues(t, kindReceipt, r.entry(t, "alice", "k").kind, "Redis was told when Finish returned")
		})
	}
}

// Who joined an attempt that came to nothing begins anew. The old mark must be
// gone by then, or he would be told that somebody is at work.
func TestMarkIsGoneBeforeThoseWhoJoinedBeginAnew(t *testing.T) {
	t.Parallel()
	addr, arrived, letGo := held(t, testserver.Redis(t).Addr, "EVAL")
	defer letGo()
	r := open(t, addr, nil)
	user := somebody(t)
	adm := r.admit(t, attempt(user, "k"), order.Ours)
	joined := r.admit(t, attempt(user, "k"), order.Joined)
	finished := make(chan struct{})
	go func() { defer close(finished); adm.Ticket.Finish(t.Context(), released()) }()
	<-arrived
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := joined.Flight.Wait(ctx)
	require.ErrorIs(t, err, context.Canceled)
	letGo()
	_, err = wait(t, joined.Flight)
	require.ErrorIs(t, err, order.ErrUnavailable)
	<-finished
	r.admit(t, attempt(user, "k"), order.Ours).Ticket.Finish(t.Context(), released())
}

func TestPanicLeavesNoFlightBehind(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	r := open(t, startMini(t).Addr(), func(s *settings) {
		s.options.Tuning = func() Tuning {
			if broken.Load() {
				panic("the settings are gone")
			}
			return s.tuning
		}
	})
	broken.Store(true)
	require.Panics(t, func() { r.Admit(t.Context(), attempt("alice", "k")) })
	broken.Store(false)
	adm := r.admit(t, attempt("alice", "k"), order.Ours)
	joined := r.admit(t, attempt("alice", "k"), order.Joined)
	broken.Store(true)
	require.Panics(t, func() { adm.Ticket.Finish(t.Context(), created()) })
	broken.Store(false)
	_, err := wait(t, joined.Flight)
	require.NoError(t, err)
	r.admit(t, attempt("alice", "k"), order.Running).Ticket.Finish(t.Context(), order.End{})
}

func TestManyAttemptsAtOnceHaveOneOwnerEach(t *testing.T) {
	t.Parallel()
	mini := startMini(t)
	gateways := []*rig{open(t, mini.Addr(), nil), open(t, mini.Addr(), nil), open(t, mini.Addr(), guardOnly)}
	var owners [40]atomic.Int32
	var all sync.WaitGroup
	for i := range 24 {
		r := gateways[i%len(gateways)]
		all.Go(func() {
			for k := range owners {
				a := attempt(fmt.Sprint("user", k%3), order.Key(fmt.Sprint("k", k)))
				if i%5 == 0 {
					a.Digest[0]++ // the same key for something else
				}
				adm := r.Admit(t.Context(), a)
				switch adm.Advice {
				case order.Ours:
					owners[k].Add(1)
					end := created()
					end.Receipt.Digest = a.Digest
					adm.Ticket.Finish(t.Context(), end)
				case order.Joined:
					if _, err := adm.Flight.Wait(t.Context()); err != nil {
						t.Error(err)
					}
				case order.Seen, order.Running:
					if adm.Ticket != nil {
						adm.Ticket.Finish(t.Context(), order.End{Receipt: adm.Receipt})
					}
				default:
					t.Errorf("advice %d", adm.Advice)
				}
				r.Peek(t.Context(), a.UserID, a.Key)
			}
		})
	}
	within(t, time.Minute, all.Wait)
	for k := range owners {
		require.EqualValues(t, 1, owners[k].Load())
	}
}
