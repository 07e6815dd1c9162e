package order_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
)

// process is one gateway of fakes.
type process struct {
	filter   *ordertest.Filter
	ledger   *ordertest.Ledger
	observer *ordertest.Observer
	intake   *order.Intake
}

// wire makes a process; hook, when it is not nil, runs after each admission.
func wire(f *ordertest.Filter, l *ordertest.Ledger, hook func(ctx context.Context, a order.Admission)) *process {
	p := &process{filter: f, ledger: l, observer: &ordertest.Observer{}}
	p.intake = order.NewIntake(order.Options{
		Filter: hookedFilter{f, hook}, Ledger: l, Observer: p.observer, Now: time.Now,
		Tuning: func() order.Tuning { return defaultTuning },
	})
	return p
}

type hookedFilter struct {
	*ordertest.Filter
	hook func(ctx context.Context, a order.Admission)
}

func (h hookedFilter) Admit(ctx context.Context, a order.Attempt) order.Admission {
	adm := h.Filter.Admit(ctx, a)
	if h.hook != nil {
		h.hook(ctx, adm)
	}
	return adm
}

// newProcess makes a process of its own, where alice has 100.00.
func newProcess(t *testing.T, hook func(ctx context.Context, a order.Admission)) *process {
	t.Helper()
	l := ordertest.NewLedger(ordertest.PlainRenderer{}, time.Now)
	require.NoError(t, l.SetBalance(t.Context(), "alice", 100_00))
	return wire(ordertest.NewFilter(time.Now), l, hook)
}

func aliceOrders(t *testing.T) *order.Command {
	t.Helper()
	c, err := order.NewCommand(order.CreateOrder, "alice", "k", []order.Line{goodLine()})
	require.NoError(t, err)
	return c
}

type submitted struct {
	order.Answer
	err error
}

// submit runs Submit beside the test; the result comes when it is there.
func (p *process) submit(ctx context.Context, c *order.Command, wait time.Duration) <-chan submitted {
	done := make(chan submitted, 1)
	go func() {
		a, err := p.intake.Submit(ctx, c, wait)
		done <- submitted{a, err}
	}()
	return done
}

func TestWhoJoinsGetsTheAnswerAsAReplay(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(l *ordertest.Ledger){
		"created":                 func(*ordertest.Ledger) {},
		"rejected and remembered": func(l *ordertest.Ledger) { _ = l.SetBalance(context.Background(), "alice", 0) },
		"rejected and forgotten": func(l *ordertest.Ledger) {
			_ = l.SetBalance(context.Background(), "alice", 0)
			l.RememberRejections(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcess(t, nil)
				prepare(p.ledger)
				arrived := p.ledger.Block()
				owner := p.submit(t.Context(), aliceOrders(t), 0)
				<-arrived
				joined := make([]<-chan submitted, 5)
				for i := range joined {
					joined[i] = p.submit(t.Context(), aliceOrders(t), 0)
				}
				synctest.Wait()
				p.ledger.Release()

				first := <-owner
				require.NoError(t, first.err)
				require.NotEqual(t, order.Replayed, first.Kind)
				for _, j := range joined {
					got := <-j
					require.NoError(t, got.err)
					require.Equal(t, order.Answer{Kind: order.Replayed, Layer: order.LayerProcess, Receipt: first.Receipt}, got.Answer)
				}
				require.Equal(t, 1, p.ledger.Calls().Decide)
				require.Zero(t, p.filter.Flights())
			})
		})
	}
}

func TestWhoJoinsGetsTheOwnersError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, nil)
		fault := order.Undecided(order.OutcomeUnknown, order.ErrUnavailable)
		p.ledger.SetFault(func(*order.Command) error { return fault })
		arrived := p.ledger.Block()
		owner := p.submit(t.Context(), aliceOrders(t), 0)
		<-arrived
		joined := p.submit(t.Context(), aliceOrders(t), 0)
		synctest.Wait()
		p.ledger.Release()
		for _, done := range []<-chan submitted{owner, joined} {
			got := <-done
			require.ErrorIs(t, got.err, order.ErrUnavailable)
			requireOutcome(t, got.err, order.OutcomeUnknown)
		}
	})
}

func TestWhoJoinsSurvivesThePanicOfTheOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, nil)
		p.ledger.SetFault(func(*order.Command) error { panic("a bug") })
		arrived := p.ledger.Block()
		panicked := make(chan any, 1)
		c := aliceOrders(t)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = p.intake.Submit(t.Context(), c, 0)
		}()
		<-arrived
		joined := p.submit(t.Context(), aliceOrders(t), 0)
		synctest.Wait()
		p.ledger.Release()
		got := <-joined
		require.ErrorIs(t, got.err, order.ErrInternal)
		requireOutcome(t, got.err, order.OutcomeUnknown)
		require.Equal(t, "a bug", <-panicked)
		require.Zero(t, p.filter.Flights())
	})
}

func TestWhoJoinsWaitsForItsBudgetAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, admitted, proceed := leaver(t)
		owner := p.submit(t.Context(), aliceOrders(t), 0)
		defer func() { proceed(); <-owner }()
		<-admitted
		started := time.Now()
		got := <-p.submit(t.Context(), aliceOrders(t), 0)
		require.NoError(t, got.err)
		require.Equal(t, order.Answer{Kind: order.InProgress, Layer: order.LayerProcess, RetryAfter: time.Second}, got.Answer)
		require.Equal(t, defaultTuning.Budget, time.Since(started))
	})
}

func TestWhoJoinsAndWaitsIsAnsweredWithinItsWaitAndOneBudget(t *testing.T) {
	t.Parallel()
	for asked, most := range map[time.Duration]time.Duration{
		0: 0, time.Second: time.Second, 8 * time.Second: 8 * time.Second, time.Hour: defaultTuning.MaxWait,
	} {
		synctest.Test(t, func(t *testing.T) {
			p, admitted, proceed := leaver(t)
			owner := p.submit(t.Context(), aliceOrders(t), 0)
			defer func() { proceed(); <-owner }()
			<-admitted
			started := time.Now()
			got := <-p.submit(t.Context(), aliceOrders(t), asked)
			require.NoError(t, got.err)
			require.Equal(t, order.InProgress, got.Kind)
			require.GreaterOrEqual(t, time.Since(started), most-200*time.Millisecond)
			require.LessOrEqual(t, time.Since(started), most+defaultTuning.Budget)
		})
	}
}

// TestWhoJoinsAnAnswerWithoutAReceiptGetsItAsItIs: it is nobody's replay and has
// no first-seen time to count from.
func TestWhoJoinsAnAnswerWithoutAReceiptGetsItAsItIs(t *testing.T) {
	t.Parallel()
	for _, told := range []order.Answer{
		{Kind: order.Reused, Layer: order.LayerRedis, Age: time.Second},
		{Kind: order.InProgress, Layer: order.LayerRedis, Age: time.Second, RetryAfter: time.Second},
	} {
		s := newStubs(t, order.Admission{Advice: order.Joined, Flight: endedFlight{answer: told}})
		a, err := s.intake.Submit(t.Context(), s.command, 0)
		require.NoError(t, err)
		require.Equal(t, told.Kind, a.Kind)
		require.Equal(t, told.RetryAfter, a.RetryAfter)
		require.Less(t, a.Age, time.Minute)
	}
}

func TestWhoJoinedAndLeavesKnowsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, nil)
		arrived := p.ledger.Block()
		owner := p.submit(t.Context(), aliceOrders(t), 0)
		<-arrived
		for _, wait := range []time.Duration{0, time.Minute} {
			ctx, cancel := context.WithCancel(t.Context())
			joined := p.submit(ctx, aliceOrders(t), wait)
			synctest.Wait()
			cancel()
			got := <-joined
			require.ErrorIs(t, got.err, context.Canceled)
			requireOutcome(t, got.err, order.OutcomeUnknown)
		}
		p.ledger.Release()
		require.NoError(t, (<-owner).err, "the owner is not disturbed")
	})
}
