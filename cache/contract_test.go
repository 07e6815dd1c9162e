package cache

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
)

// shop is several gateways over one database and one Redis.
type shop struct {
	ledger   *ordertest.Ledger
	observer *ordertest.Observer
	intakes  []*order.Intake
}

const customer = "alice"

func openShop(t *testing.T, grace time.Duration, now func() time.Time, filters ...*rig) *shop {
	t.Helper()
	s := &shop{ledger: ordertest.NewLedger(ordertest.PlainRenderer{}, now), observer: &ordertest.Observer{}}
	require.NoError(t, s.ledger.SetBalance(t.Context(), customer, 1_000_000))
	for _, f := range filters {
		s.intakes = append(s.intakes, order.NewIntake(order.Options{
			Filter: f, Ledger: s.ledger, Observer: s.observer, Now: now,
			Tuning: func() order.Tuning {
				return order.Tuning{Budget: hung, InProgressGrace: grace, MaxWait: hung}
			},
		}))
	}
	return s
}

func orderOf(t *testing.T, key order.Key) *order.Command {
	t.Helper()
	c, err := order.NewCommand(order.CreateOrder, customer, key, []order.Line{{SKU: "sku", Quantity: 1, Amount: 1}})
	require.NoError(t, err)
	return c
}

// storm does something to a Redis until its context ends.
type storm func(ctx context.Context, t *testing.T, server *testserver.RedisServer)

// One key, many callers at once, several gateways: one order is made, and all
// the others get its answer, whatever becomes of Redis meanwhile.
func TestOneKeyIsOneOrderWhateverBecomesOfRedis(t *testing.T) {
	t.Parallel()
	for name, rage := range map[string]storm{
		"healthy": func(context.Context, *testing.T, *testserver.RedisServer) {},
		"frozen": func(ctx context.Context, _ *testing.T, server *testserver.RedisServer) {
			server.Stop()
			<-ctx.Done()
			server.Cont()
		},
		"dead": func(_ context.Context, _ *testing.T, server *testserver.RedisServer) { server.Kill() },
		"flushed again and again": func(ctx context.Context, t *testing.T, server *testserver.RedisServer) {
			client := server.Client(t)
			for ctx.Err() == nil {
				client.FlushAll(ctx)
			}
		},
		"frozen again and again": func(ctx context.Context, _ *testing.T, server *testserver.RedisServer) {
			for ctx.Err() == nil {
				server.Stop()
				server.Cont()
			}
		},
		"restarted again and again": func(ctx context.Context, _ *testing.T, server *testserver.RedisServer) {
			for ctx.Err() == nil {
				server.Kill()
				server.Restart()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testserver.StartRedis(t)
			change := withOpTimeout(hurried, func(s *settings) { s.tuning.BreakerOpenFor = hurried })
			s := openShop(t, hurried, time.Now,
				open(t, server.Addr, change),
				open(t, server.Addr, func(s *settings) { change(s); s.options.Pipelining = false }),
				open(t, server.Addr, func(s *settings) { change(s); guardOnly(s) }),
			)
			ctx, calm := context.WithCancel(t.Context())
			var raging sync.WaitGroup
			raging.Go(func() { rage(ctx, t, server) })
			defer raging.Wait()
			defer calm()
			const keys = 8
			for i := range keys {
				s.race(t, orderOf(t, order.Key(fmt.Sprint("k", i))))
			}
			orders, err := s.ledger.CountOrders(t.Context(), customer)
			require.NoError(t, err)
			require.Equal(t, keys, orders)
		})
	}
}

func (s *shop) race(t *testing.T, c *order.Command) {
	t.Helper()
	const callers = 64
	var made atomic.Int32
	var bodies [callers]string
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range callers {
		all.Go(func() {
			<-start
			a, err := s.intakes[i%len(s.intakes)].Submit(t.Context(), c, hung)
			switch {
			case err != nil:
				t.Errorf("caller %d: %v", i, err)
			case a.Kind == order.Created:
				made.Add(1)
			case a.Kind != order.Replayed:
				t.Errorf("caller %d: %v", i, a.Kind)
			}
			bodies[i] = string(a.Receipt.Response.Body)
		})
	}
	close(start)
	within(t, 3*hung, all.Wait)
	require.EqualValues(t, 1, made.Load())
	for _, body := range bodies {
		require.Equal(t, bodies[0], body)
	}
	require.NotEmpty(t, bodies[0])
}

// A mark that nobody will ever end, as a dead gateway or a late packet leaves
// it, delays by the grace and then the ledger is asked.
func TestOrphanMarkHoldsNoKeyHostage(t *testing.T) {
	t.Parallel()
	c := newClock()
	at := func(s *settings) { s.options.Now = c.Now }
	mini := startMini(t)
	dead, alive := open(t, mini.Addr(), at), open(t, mini.Addr(), at)
	const grace = 2 * time.Second
	s := openShop(t, grace, time.Now, alive)
	command := orderOf(t, "k")
	dead.admit(t, order.Attempt{UserID: customer, Key: "k", Digest: command.Digest}, order.Ours)

	a, err := s.intakes[0].Submit(t.Context(), command, 0)
	require.NoError(t, err)
	require.Equal(t, order.InProgress, a.Kind)

	c.move(grace + time.Second)
	a, err = s.intakes[0].Submit(t.Context(), command, 0)
	require.NoError(t, err)
	require.Equal(t, order.Created, a.Kind)
	require.Equal(t, []order.Anomaly{order.StaleMark}, s.observer.Anomalies())
	require.EqualValues(t, kindReceipt, alive.entry(t, customer, "k").kind)
}

func TestFilterKeepsTheContract(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, ways func(*settings)) {
		ordertest.RunFilter(t, func(t *testing.T) ordertest.Filters {
			proxy := faultproxy.NewRedis(t, testserver.Redis(t).Addr)
			change := func(s *settings) {
				ways(s)
				s.options.Prefix, s.tuning.BreakerFailures = "contract"+rand.Text(), 1<<20
			}
			here := open(t, proxy.Addr(), change)
			there := open(t, proxy.Addr(), func(s *settings) { change(s); s.options.Prefix = here.o.Prefix })
			return ordertest.Filters{Here: here, There: there, SetDown: func(down bool) {
				proxy.OnCommand(func(faultproxy.Command) faultproxy.Action {
					if down {
						return faultproxy.AnswerError{Message: "LOADING Redis is loading the dataset in memory"}
					}
					return faultproxy.Pass
				})
			}}
		})
	})
}
