package order_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
)

// newGateways makes processes on one database and one shared tier.
func newGateways(t *testing.T, n int) []*process {
	t.Helper()
	l := ordertest.NewLedger(ordertest.PlainRenderer{}, time.Now)
	require.NoError(t, l.SetBalance(context.Background(), "alice", order.MaxBalance))
	gateways := []*process{wire(ordertest.NewFilter(time.Now), l, nil)}
	for len(gateways) < n {
		gateways = append(gateways, wire(gateways[0].filter.Sibling(), l.Sibling(), nil))
	}
	return gateways
}

func TestOneKeyAtManyGatewaysIsOneOrder(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(gateways []*process){
		"filter up":      func([]*process) {},
		"filter flushed": func(g []*process) { g[0].filter.Flush() },
		"filter down":    func(g []*process) { g[0].filter.SetDown(true); g[1].filter.SetDown(true); g[2].filter.SetDown(true) },
		"half down":      func(g []*process) { g[1].filter.SetDown(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				synctest.Test(t, func(t *testing.T) { raceOneKey(t, newGateways(t, 3), disturb) })
			}
		})
	}
}

func raceOneKey(t *testing.T, g []*process, disturb func([]*process)) {
	answers := make([]submitted, 64)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range answers {
		c := aliceOrders(t)
		wg.Go(func() {
			<-start
			// Longer than a mark is believed: a gateway that loses the filter behind
			// its mark cannot take it back.
			answers[i].Answer, answers[i].err = g[i%3].intake.Submit(t.Context(), c, 2*defaultTuning.InProgressGrace)
		})
	}
	wg.Go(func() {
		<-start
		for range 50 {
			disturb(g)
		}
	})
	close(start)
	wg.Wait()

	kinds := map[order.Kind]int{}
	bodies := map[string]int{}
	for _, a := range answers {
		require.NoError(t, a.err)
		kinds[a.Kind]++
		bodies[string(a.Receipt.Response.Body)]++
	}
	require.Equal(t, map[order.Kind]int{order.Created: 1, order.Replayed: 63}, kinds)
	require.Len(t, bodies, 1)
	require.Equal(t, 1, g[0].ledger.CommitCount())
}

// TestEveryKeySettles throws faults at three gateways in random order: lost
// replies, refused transactions, a filter that forgets or is away, marks of the
// dead, clients that leave, failovers that keep all data. Then each key is asked
// until it is settled.
func TestEveryKeySettles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &storm{
					random:   rand.New(rand.NewPCG(seed, 1)),
					gateways: newGateways(t, 3), bodies: map[order.Key]string{}, created: map[order.Key]int{},
				}
				s.rage(t)
			})
		})
	}
}

type storm struct {
	gateways []*process

	mu      sync.Mutex
	random  *rand.Rand
	bodies  map[order.Key]string // what the first who was told of the order was told
	created map[order.Key]int    // how many were told that they made it
	faults  []error
}

func (s *storm) chance(percent int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(100) < percent
}

func (s *storm) pick(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

func (s *storm) rage(t *testing.T) {
	const keys, attempts = 6, 8
	for _, g := range s.gateways {
		g.ledger.SetFault(func(*order.Command) error {
			time.Sleep(time.Duration(s.pick(3000)) * time.Millisecond) //nolint:forbidigo // the clock of synctest: nothing waits
			switch {
			case s.chance(15):
				return order.Undecided(order.OutcomeNotCommitted, order.ErrUnavailable)
			case s.chance(10):
				return order.Undecided(order.OutcomeUnknown, order.ErrUnavailable)
			}
			return nil
		})
		g.ledger.SetLostReply(func(*order.Command, order.Decision) error {
			if s.chance(20) {
				return order.Undecided(order.OutcomeUnknown, order.ErrUnavailable)
			}
			return nil
		})
	}
	var wg sync.WaitGroup
	for k := range keys {
		key := order.Key(fmt.Sprintf("k-%d", k))
		for range attempts {
			wg.Go(func() {
				time.Sleep(time.Duration(s.pick(5000)) * time.Millisecond) //nolint:forbidigo // the clock of synctest: nothing waits
				s.disturb(key)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if s.chance(20) {
					time.AfterFunc(time.Duration(s.pick(2000))*time.Millisecond, cancel)
				}
				s.submit(ctx, key, time.Duration(s.pick(3))*time.Second)
			})
		}
	}
	wg.Wait()

	for _, g := range s.gateways {
		g.ledger.SetFault(nil)
		g.ledger.SetLostReply(nil)
		g.filter.SetDown(false)
		require.Zero(t, g.filter.Flights())
	}
	for k := range keys {
		key := order.Key(fmt.Sprintf("k-%d", k))
		for !s.submit(context.Background(), key, 0) {
			time.Sleep(time.Second) //nolint:forbidigo // the clock of synctest: nothing waits
		}
	}
	require.Empty(t, s.faults)
	orders, err := s.gateways[0].ledger.CountOrders(context.Background(), "alice")
	require.NoError(t, err)
	require.Equal(t, keys, orders)
}

func (s *storm) disturb(key order.Key) {
	g := s.gateways[s.pick(len(s.gateways))]
	switch s.pick(8) {
	case 0:
		g.filter.Flush()
	case 1:
		g.filter.SetDown(true)
	case 2:
		g.filter.SetDown(false)
	case 3:
		g.filter.PutMark("alice", key, order.Digest{1}, time.Now())
	case 4:
		g.ledger.SetIdentity(order.ServerID(1 + s.pick(3)))
	}
}

// submit asks once, and reports whether the key is settled. Answers about one
// key must never contradict one another.
func (s *storm) submit(ctx context.Context, key order.Key, wait time.Duration) (settled bool) {
	c, err := order.NewCommand(order.CreateOrder, "alice", key, []order.Line{goodLine()})
	if err == nil {
		c.Lines[0].ExternalOrderNo = "" // the number is not what is tested
		c, err = order.NewCommand(order.CreateOrder, "alice", key, c.Lines)
	}
	var a order.Answer
	if err == nil {
		a, err = s.gateways[s.pick(len(s.gateways))].intake.Submit(ctx, c, wait)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var undecided *order.UndecidedError
	switch {
	case errors.As(err, &undecided):
		return false
	case err != nil:
		s.faults = append(s.faults, err)
		return true
	case a.Kind == order.InProgress, a.Kind == order.Reused: // the planted mark has another content
		return false
	}
	body := string(a.Receipt.Response.Body)
	if a.Kind == order.Created {
		s.created[key]++
	}
	if first, told := s.bodies[key]; told && first != body || s.created[key] > 1 {
		s.faults = append(s.faults, fmt.Errorf("%s: %s with %s after %s", key, a.Kind, body, first))
	}
	s.bodies[key] = body
	return true
}
