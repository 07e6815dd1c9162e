package order

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Tuning is what may be changed while Intake runs.
type Tuning struct {
	// Budget bounds one request from its arrival to its answer, beyond what a
	// client asked to wait for. Default 6 s. So the longest answer takes MaxWait
	// and Budget together.
	Budget time.Duration
	// InProgressGrace is how long a mark is believed without asking the ledger.
	// Default 2 s.
	InProgressGrace time.Duration
	// MaxWait caps what a client may ask for with Prefer: wait=n. Default 10 s.
	MaxWait time.Duration
	// ConfirmReceipts asks the ledger before every replay. Default false:
	// only receipts of another server are confirmed.
	ConfirmReceipts bool
}

// Options are what an [Intake] is made of. All are required, but Deferrals
// only where [Intake.Defer] is used.
type Options struct {
	Filter    Filter
	Ledger    Ledger
	Deferrals Deferrals
	Observer  Observer
	Now       func() time.Time // must agree with the clock of contexts: deadlines are made from it
	Tuning    func() Tuning    // the settings in force; called once per request
}

// decideFunc asks the ledger for a decision.
type decideFunc func(ctx context.Context, c *Command) (Decision, error)

// Intake decides what a submitted command is answered with. Safe for concurrent use.
type Intake struct{ o Options }

// NewIntake wires the decision.
func NewIntake(o Options) *Intake { return &Intake{o} }

// errAbandoned ends a flight whose caller went away before the ledger was
// asked: those who joined it start anew.
var errAbandoned = errors.New("the caller went away before the ledger was asked")

// pauses between looks at a running attempt, when the client asked to wait.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 200 * time.Millisecond
)

// askAgain is when to ask again for an attempt that has run for so long. Most are
// over in a moment, and one that took longer may take as long again. Asking costs
// Redis one command, and only for what was accepted for later a transaction.
func askAgain(age time.Duration) time.Duration {
	return min(max(age, 100*time.Millisecond), time.Second)
}

// Submit decides one command. A wait above zero lets it wait that long (at most
// Tuning.MaxWait) for an attempt that somebody else is running.
//
// The error is an [*UndecidedError]. A cancelled ctx stops Submit before the
// ledger is asked; from then on it runs under Tuning.Budget alone.
func (in *Intake) Submit(ctx context.Context, c *Command, wait time.Duration) (Answer, error) {
	return in.observed(ctx, c, wait, in.o.Ledger.Decide)
}

// Defer accepts a command that is to be carried out later. The answer is
// Accepted, or what Submit would answer to a key that is known already.
func (in *Intake) Defer(ctx context.Context, c *Command) (Answer, error) {
	a, err := in.observed(ctx, c, 0, in.o.Deferrals.Accept)
	if err == nil && a.Kind == InProgress && a.Layer == LayerLedger {
		a.Kind = Accepted
	}
	return a, err
}

func (in *Intake) observed(ctx context.Context, c *Command, wait time.Duration, ask decideFunc) (Answer, error) {
	started := in.o.Now()
	a, err := in.submit(ctx, c, wait, started, ask)
	in.o.Observer.Decided(a, err, in.o.Now().Sub(started))
	return a, err
}

func (in *Intake) submit(ctx context.Context, c *Command, wait time.Duration, started time.Time, ask decideFunc) (Answer, error) {
	t := in.o.Tuning()
	deadline := started.Add(t.Budget)
	if c.Key == "" {
		return in.decide(ctx, c, Admission{}, deadline, ask)
	}
	waitUntil := started.Add(min(wait, t.MaxWait))
	attempt := Attempt{UserID: c.UserID, Key: c.Key, Digest: c.Digest}
	pause := firstPause
	for {
		adm := in.o.Filter.Admit(ctx, attempt)
		a, err := in.follow(ctx, c, adm, t, deadline, ask)
		if errors.Is(err, errAbandoned) {
			if ctx.Err() == nil && in.o.Now().Before(deadline) {
				continue
			}
			return Answer{}, Undecided(OutcomeUnknown, fmt.Errorf("%w: %w", ErrUnavailable, err))
		}
		if err != nil || a.Kind != InProgress || !in.o.Now().Add(pause).Before(waitUntil) {
			return a, err
		}
		if !sleep(ctx, pause) {
			return Answer{}, Undecided(OutcomeUnknown, ctx.Err())
		}
		pause = min(2*pause, lastPause)
		// What is left to decide gets a budget of its own: waiting was asked for.
		deadline = in.o.Now().Add(t.Budget)
	}
}

// follow turns the filter's advice into an answer, asking the ledger where the
// advice is not enough.
func (in *Intake) follow(ctx context.Context, c *Command, adm Admission, t Tuning, deadline time.Time, ask decideFunc) (Answer, error) {
	switch adm.Advice {
	case Joined:
		return in.join(ctx, adm, deadline)
	case Seen:
		return in.replay(ctx, c, adm, t, deadline, ask)
	case Running:
		if adm.Age <= t.InProgressGrace {
			a := Answer{Kind: InProgress, Layer: adm.Layer, Age: adm.Age, RetryAfter: askAgain(adm.Age)}
			if adm.Digest != c.Digest {
				a = Answer{Kind: Reused, Layer: adm.Layer, Age: adm.Age}
			}
			in.finish(ctx, adm, End{Answer: a})
			return a, nil
		}
		in.o.Observer.Noticed(StaleMark, adm.Age)
		return in.decide(ctx, c, adm, deadline, ask)
	default:
		return in.decide(ctx, c, adm, deadline, ask)
	}
}

// join waits for the attempt that this process is deciding already.
func (in *Intake) join(ctx context.Context, adm Admission, deadline time.Time) (Answer, error) {
	wctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	a, err := adm.Flight.Wait(wctx)
	switch {
	case err == nil:
		if a.Kind == Created || a.Kind == Rejected {
			a.Kind, a.Rejection = Replayed, nil
		}
		a.Layer = LayerProcess
		if !a.Receipt.FirstSeen.IsZero() { // reused and in progress have no receipt
			a.Age = max(0, in.o.Now().Sub(a.Receipt.FirstSeen))
		}
		return a, nil
	case ctx.Err() != nil:
		return Answer{}, Undecided(OutcomeUnknown, ctx.Err())
	case wctx.Err() != nil && errors.Is(err, wctx.Err()):
		return Answer{Kind: InProgress, Layer: LayerProcess, RetryAfter: time.Second}, nil
	default:
		return Answer{}, err
	}
}

// replay answers from a receipt, confirmed first where it may be of a server
// whose last commits a failover has lost.
func (in *Intake) replay(ctx context.Context, c *Command, adm Admission, t Tuning, deadline time.Time, ask decideFunc) (Answer, error) {
	r, layer := adm.Receipt, adm.Layer
	if t.ConfirmReceipts || r.Server == 0 || r.Server != in.o.Ledger.Identity() {
		confirmed, err := in.find(ctx, c, adm, deadline)
		switch {
		case errors.Is(err, ErrNotFound):
			in.o.Observer.Noticed(ReceiptLost, max(0, in.o.Now().Sub(adm.Receipt.FirstSeen)))
			return in.decide(ctx, c, adm, deadline, ask)
		case err != nil:
			err = Undecided(OutcomeUnknown, err)
			end := End{Err: err}
			if ctx.Err() != nil {
				end.Err = errAbandoned // it is not those who joined that left
			}
			in.finish(ctx, adm, end)
			return Answer{}, err
		}
		r, layer = confirmed, LayerLedger
	}
	a := in.answer(c, Decision{Kind: Replayed, Receipt: r}, layer)
	end := End{Answer: a, Receipt: r}
	if layer == LayerLedger {
		end.Mark = MarkReceipt
	}
	in.finish(ctx, adm, end)
	return a, nil
}

// find reads the record of the command's key. A panic ends the attempt for those
// who joined it.
func (in *Intake) find(ctx context.Context, c *Command, adm Admission, deadline time.Time) (Receipt, error) {
	panicked := true
	defer func() {
		if panicked {
			in.finish(ctx, adm, End{Err: Undecided(OutcomeUnknown, ErrInternal)})
		}
	}()
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	r, err := in.o.Ledger.Find(ctx, c.UserID, c.Key)
	panicked = false
	return r, err
}

// decide asks the ledger, detached from the client, and tells the filter.
func (in *Intake) decide(ctx context.Context, c *Command, adm Admission, deadline time.Time, ask decideFunc) (a Answer, err error) {
	end := End{Err: Undecided(OutcomeUnknown, ErrInternal)} // what a panic leaves: nothing is known
	defer func() { in.finish(ctx, adm, end) }()

	if cerr := ctx.Err(); cerr != nil {
		end = End{Err: errAbandoned, Mark: MarkReleased}
		return Answer{}, Undecided(OutcomeNotCommitted, cerr)
	}
	dctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	d, err := ask(dctx, c)
	if err != nil {
		end = End{Err: err}
		if OutcomeOf(err) == OutcomeNotCommitted {
			end.Mark = MarkReleased
		}
		return Answer{}, err
	}
	a = in.answer(c, d, LayerLedger)
	end = End{Answer: a, Mark: MarkReceipt, Receipt: d.Receipt}
	if d.Receipt.State == Processing || (d.Kind == Rejected && !d.Remembered) {
		end = End{Answer: a, Mark: MarkReleased} // nothing that the filter could answer with
	}
	if adm.Advice == Ours && (d.Kind == Replayed || d.Kind == Reused) {
		in.o.Observer.Noticed(FilterMissed, a.Age)
	}
	return a, nil
}

// answer compares digests, always: a receipt is only ever replayed to the
// content that made it.
func (in *Intake) answer(c *Command, d Decision, layer Layer) Answer {
	a := Answer{Kind: d.Kind, Layer: layer, Receipt: d.Receipt, Rejection: d.Rejection}
	if d.Kind == Created || (d.Kind == Rejected && !d.Remembered) {
		return a
	}
	if d.Kind != Rejected {
		a.Age = max(0, in.o.Now().Sub(d.Receipt.FirstSeen))
	}
	switch {
	case d.Kind == Reused || (d.Receipt.Digest != c.Digest && !flawDigestIgnored):
		return Answer{Kind: Reused, Layer: layer, Age: a.Age}
	case d.Kind == InProgress || d.Receipt.State == Processing:
		return Answer{Kind: InProgress, Layer: layer, Age: a.Age, RetryAfter: askAgain(a.Age)}
	}
	return a
}

func (in *Intake) finish(ctx context.Context, adm Admission, end End) {
	if adm.Ticket != nil {
		adm.Ticket.Finish(context.WithoutCancel(ctx), end)
	}
}

// sleep waits, and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// RequestStatus is what became of the request with a key.
type RequestStatus struct {
	State      State // Processing, Succeeded or Failed
	Receipt    Receipt
	RetryAfter time.Duration // for Processing
}

// Status tells the caller what became of the request with a key: ErrNotFound
// when this caller never used it. Processing is only said while it is true: a
// mark beyond its grace is checked behind the user's lock.
func (in *Intake) Status(ctx context.Context, userID string, key Key) (RequestStatus, error) {
	t := in.o.Tuning()
	ctx, cancel := context.WithTimeout(ctx, t.Budget)
	defer cancel()
	// The filter is asked first: whoever is running there and is done before
	// the ledger is read is found in the ledger.
	running := false
	for _, g := range in.o.Filter.Peek(ctx, userID, key) {
		running = running || g.Running && g.Age <= t.InProgressGrace
	}
	r, err := in.o.Ledger.Find(ctx, userID, key)
	if errors.Is(err, ErrNotFound) && !running {
		r, err = in.o.Ledger.Confirm(ctx, userID, key)
	}
	switch {
	case err == nil && r.State == Processing, errors.Is(err, ErrNotFound) && running:
		return RequestStatus{State: Processing, RetryAfter: time.Second}, nil
	case err != nil:
		return RequestStatus{}, err
	default:
		return RequestStatus{State: r.State, Receipt: r}, nil
	}
}
