package store

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/oncegate/oncegate/order"
)

// ledger hands commands to workers. A user's commands always go to the same
// worker, so that within a gateway they never wait for one another's locks.
type ledger struct {
	s       *Store
	seed    maphash.Seed
	byHash  []*worker    // a user's is that of the user's hash
	mu      sync.RWMutex // guards closed against sends on closed queues
	closed  bool
	stop    context.Context // ended when Close runs out of patience
	abandon context.CancelFunc
	workers sync.WaitGroup
}

// pending is a command on its way through the ledger.
type pending struct {
	cmd      *order.Command
	ids      []order.ID // the same in every attempt, so that an attempt recognises its own work
	deadline time.Time
	phase    atomic.Uint32
	done     chan result // takes one result without waiting
	deferred bool        // it was accepted before and gets its answer now

	// Owned by the worker.
	unknown     bool             // a COMMIT with this command's rows was not answered
	unknownAt   order.ServerID   // by this server; zero: by several
	found       bool             // and they are there: only the answer is missing
	refusal     *order.Rejection // what those rows were, when they were no order
	refusedAt   time.Time        // by the database's clock
	suspect     bool             // a unique index spoke: look at the order rows, too
	provisioned bool             // an account was opened for it

	queued time.Time
	span   trace.Span // nil without tracing
}

const (
	phaseWaiting uint32 = iota
	phaseStarted
	phaseWithdrawn
)

type result struct {
	decision order.Decision
	err      error
}

func newLedger(s *Store) *ledger {
	l := &ledger{s: s, seed: maphash.MakeSeed()}
	l.stop, l.abandon = context.WithCancel(context.Background())
	for range s.o.Workers {
		w := &worker{s: s, stop: l.stop, queue: make(chan *pending, s.o.Queue)}
		l.byHash = append(l.byHash, w)
		l.workers.Go(w.run)
	}
	return l
}

// Decide implements [order.Ledger].
func (s *Store) Decide(ctx context.Context, c *order.Command) (order.Decision, error) {
	if s.o.Tracer != nil {
		return s.decideTraced(ctx, c)
	}
	return s.decide(ctx, &pending{cmd: c})
}

func (s *Store) decide(ctx context.Context, p *pending) (order.Decision, error) {
	p.queued = s.o.Now()
	p.ids, p.done = order.NewIDs(p.queued, len(p.cmd.Lines)), make(chan result, 1)
	var ok bool
	if p.deadline, ok = ctx.Deadline(); !ok {
		return order.Decision{}, order.Undecided(order.OutcomeNotCommitted, fmt.Errorf("%w: the context has no deadline", order.ErrInternal))
	}
	if err := ctx.Err(); err != nil { // a worker with nothing to do would have begun before it is withdrawn
		return order.Decision{}, order.Undecided(order.OutcomeNotCommitted, fmt.Errorf("%w: %w", order.ErrUnavailable, err))
	}
	if err := s.ledger.enqueue(p); err != nil {
		return order.Decision{}, order.Undecided(order.OutcomeNotCommitted, err)
	}
	select {
	case r := <-p.done:
		return r.decision, r.err
	case <-ctx.Done():
		if p.phase.CompareAndSwap(phaseWaiting, phaseWithdrawn) {
			s.metrics.withdrawn.Inc()
			return order.Decision{}, order.Undecided(order.OutcomeNotCommitted, fmt.Errorf("%w: %w", order.ErrUnavailable, ctx.Err()))
		}
		select {
		case r := <-p.done:
			return r.decision, r.err
		default:
			return order.Decision{}, order.Undecided(order.OutcomeUnknown, fmt.Errorf("%w: %w", order.ErrUnavailable, ctx.Err()))
		}
	}
}

func (l *ledger) enqueue(p *pending) error {
	w := l.byHash[maphash.String(l.seed, p.cmd.UserID)%uint64(len(l.byHash))]
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return order.ErrShuttingDown
	}
	if w.late(p) || !w.join(p) {
		l.s.metrics.overloaded.Inc()
		return order.ErrOverloaded
	}
	return nil
}

// close lets the workers empty their queues, and makes them hurry when ctx ends.
func (l *ledger) close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		for _, w := range l.byHash {
			close(w.queue)
		}
	}
	l.mu.Unlock()
	defer l.abandon()
	empty := make(chan struct{})
	go func() {
		l.workers.Wait()
		close(empty)
	}()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		l.abandon()
		<-empty
		return errors.Join(errors.New("the ledger was stopped before its queue was empty"), ctx.Err())
	}
}

// start claims a command for deciding; false when its caller has withdrawn it.
func (p *pending) start() bool { return p.phase.CompareAndSwap(phaseWaiting, phaseStarted) }

func (p *pending) deliver(d order.Decision, err error) {
	select {
	case p.done <- result{d, err}:
	default: // a panic after the delivery; the first result stands
	}
}

// fail answers with what is known of the command. Where the key has a record that
// cannot be read, an earlier attempt may have made the order.
func (p *pending) fail(err error) {
	outcome := order.OutcomeNotCommitted
	if p.unknown || p.found || errors.Is(err, errUnreadable) {
		outcome = order.OutcomeUnknown
	}
	p.deliver(order.Decision{}, order.Undecided(outcome, err))
}
