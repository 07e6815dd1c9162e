package cache

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// breaker leaves a Redis alone that does not answer, so that its time-outs are
// paid by few. Once in a while a single operation tries Redis again; all others
// go on to the ledger meanwhile.
type breaker struct {
	tuning  func() Tuning
	metrics *metrics
	logger  *slog.Logger
	moved   func(from, to, reason string) // may be nil; must not wait

	last    atomic.Pointer[error] // the latest failure, for the log
	trouble atomic.Int64          // when an operation last came to nothing, in nanoseconds since 1970

	// mu is taken under a circuit's own lock, so no circuit may be asked anything
	// under it.
	mu      sync.Mutex
	current atomic.Pointer[circuit] // changed with mu only
	state   gobreaker.State         // of current, as it was told last
}

// circuit is a breaker with a fixed time to stay open.
type circuit struct {
	*gobreaker.CircuitBreaker[struct{}]
	openFor time.Duration
}

func newBreaker(tuning func() Tuning, m *metrics, l *slog.Logger) *breaker {
	b := &breaker{tuning: tuning, metrics: m, logger: l}
	b.replace(tuning().BreakerOpenFor)
	return b
}

// run runs an operation, unless the breaker is open. It says of a failure
// whether Redis is to be blamed, as isAnswer and saysNothing tell.
func (b *breaker) run(openFor time.Duration, op func() error) error {
	c := b.current.Load()
	if c.openFor != openFor {
		c = b.replace(openFor)
	}
	_, err := c.Execute(func() (struct{}, error) {
		err := op()
		if !isAnswer(err) && !saysNothing(err) {
			b.last.Store(&err)
		}
		return struct{}{}, err
	})
	if err != nil && !isAnswer(err) {
		b.trouble.Store(time.Now().UnixNano())
	}
	return err
}

// troubled is when an operation last came to nothing, whoever was to blame; the
// zero time if none did.
func (b *breaker) troubled() time.Time {
	if at := b.trouble.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// standing reports whether the next operation tries Redis again, or why operations
// are being refused. Who asks for both asks once: the one may follow the other at any
// moment.
func (b *breaker) standing() (halfOpen bool, refusal error) {
	switch b.current.Load().State() {
	case gobreaker.StateHalfOpen:
		return true, nil
	case gobreaker.StateOpen:
		return false, fmt.Errorf("it is left alone: %w", b.lastFailure())
	default:
		return false, nil
	}
}

// refusal says why operations are being refused, or nil when they are not.
func (b *breaker) refusal() error {
	_, err := b.standing()
	return err
}

func (b *breaker) lastFailure() error {
	if err := b.last.Load(); err != nil {
		return *err
	}
	return gobreaker.ErrOpenState
}

// replace puts a closed breaker in the place of the current one.
func (b *breaker) replace(openFor time.Duration) *circuit {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.current.Load(); c != nil && c.openFor == openFor {
		return c
	}
	c := &circuit{openFor: openFor}
	c.CircuitBreaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:   1,
		Timeout:       openFor,
		ReadyToTrip:   func(n gobreaker.Counts) bool { return int(n.ConsecutiveFailures) >= b.tuning().BreakerFailures },
		IsSuccessful:  isAnswer,
		IsExcluded:    saysNothing,
		OnStateChange: func(_ string, _, to gobreaker.State) { b.changed(c, to) },
	})
	b.current.Store(c)
	b.is(gobreaker.StateClosed, true)
	return c
}

// changed notes a move of a circuit, unless another has taken its place.
func (b *breaker) changed(c *circuit, to gobreaker.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current.Load() == c {
		b.is(to, false)
	}
}

// is notes the state, and tells whoever wants to know if it is another. An outage
// is one line when it begins and one when it ends, with an answer or by a change of
// the settings: the probes that fail in between change nothing. The caller holds the
// lock.
func (b *breaker) is(now gobreaker.State, changed bool) {
	b.metrics.breakerIs(now)
	before := b.state
	if now == before {
		return
	}
	b.state = now
	b.metrics.transitions[now].Inc()
	because := b.lastFailure()
	why := ""
	if now == gobreaker.StateOpen {
		why = string(reasonOf(because))
	}
	if b.moved != nil {
		b.moved(before.String(), now.String(), why)
	}
	switch {
	case before == gobreaker.StateClosed:
		b.logger.Warn("Redis is left alone, the database answers duplicates", "reason", why, "error", because)
	case now == gobreaker.StateClosed && changed:
		b.logger.Info("Redis is tried again, for the breaker's settings have changed")
	case now == gobreaker.StateClosed:
		b.logger.Info("Redis answers again")
	}
}
