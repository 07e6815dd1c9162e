package main

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/cache"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
	"github.com/oncegate/oncegate/store"
)

// offClock is one gateway's decision on a machine whose wall clock is off. Marks
// are the one thing in which a gateway reads another's clock.
type offClock struct {
	filter *cache.Filter
	intake *order.Intake
}

func newOffClock(t *testing.T, dsn string, client redis.UniversalClient, off time.Duration) offClock {
	t.Helper()
	c := deployed(t, dsn, "")
	c.Users.ProvisionBalance = ""
	o := storeOptions(&c)
	o.Renderer = gateway.NewRenderer(c.HTTP.ProblemBase)
	balance := order.Amount(1_000_000)
	o.ProvisionBalance = &balance
	ledger, err := store.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ledger.Close(context.WithoutCancel(t.Context()))) })
	filter, err := cache.New(cache.Options{
		Client: client, MACKey: []byte("a key of sixteen bytes or more"),
		Now: func() time.Time { return time.Now().Add(off) },
		Tuning: func() cache.Tuning {
			t := cache.DefaultTuning()
			t.OpTimeout = 10 * time.Second // a healthy Redis of a busy machine may take longer than the default
			return t
		},
	})
	require.NoError(t, err)
	return offClock{filter, order.NewIntake(order.Options{
		Filter: filter, Ledger: ledger, Deferrals: ledger, Observer: &ordertest.Observer{}, Now: time.Now,
		Tuning: func() order.Tuning {
			return order.Tuning{Budget: 20 * time.Second, InProgressGrace: 10 * time.Second, MaxWait: 20 * time.Second}
		},
	})}
}

func orderOfTea(t *testing.T, key order.Key) *order.Command {
	t.Helper()
	c, err := order.NewCommand(order.CreateOrder, "alice", key, []order.Line{{SKU: "tea", Quantity: 1, Amount: 1}})
	require.NoError(t, err)
	return c
}

// Gateways whose clocks are an hour apart make one order of one key, and none of
// them believes for an hour in a mark that another left behind.
func TestGatewaysWhoseClocksDifferMakeOneOrder(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		client := testserver.StartRedis(t).Client(t)
		var gateways []offClock
		for _, off := range []time.Duration{-time.Hour, 0, time.Hour} {
			gateways = append(gateways, newOffClock(t, dsn, client, off))
		}
		t.Run("AtOnce", func(t *testing.T) {
			t.Parallel()
			answers := make([]order.Answer, 12)
			errs := make([]error, len(answers))
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() {
					answers[i], errs[i] = gateways[i%len(gateways)].intake.Submit(t.Context(), orderOfTea(t, "at-once"), 20*time.Second)
				})
			}
			all.Wait()
			created := 0
			for i, a := range answers {
				require.NoError(t, errs[i])
				if a.Kind == order.Created {
					created++
				}
				require.Contains(t, []order.Kind{order.Created, order.Replayed}, a.Kind)
				require.Equal(t, answers[0].Receipt.Response.Body, a.Receipt.Response.Body, "everybody has the same bytes")
				require.Less(t, a.Age, time.Hour/2, "the age of an answer is not of that clock")
			}
			require.Equal(t, 1, created)
		})
		for name, who := range map[string]struct{ left, asked int }{
			"MarkOfTheFuture": {left: 2, asked: 1}, "MarkOfThePast": {left: 0, asked: 1}, "MarkOfTwoHoursAhead": {left: 2, asked: 0},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cmd := orderOfTea(t, order.Key(name))
				left := gateways[who.left].filter.Admit(t.Context(), order.Attempt{UserID: cmd.UserID, Key: cmd.Key, Digest: cmd.Digest})
				require.Equal(t, order.Ours, left.Advice, "marked, and then its gateway died")
				a, err := gateways[who.asked].intake.Submit(t.Context(), cmd, 0)
				require.NoError(t, err)
				require.Equal(t, order.Created, a.Kind, "a mark whose age cannot be is not waited for")
			})
		}
	})
}
