package order

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Tuning is what may be changed while Intake runs. Nothing is filled in.
type Tuning struct {
	// Budget bounds one request from its arrival to its answer, beyond what a
	// client asked to wait for. So the longest answer takes MaxWait and Budget
	// together, and what the filter takes to be told.
	Budget time.Duration
	// InProgressGrace is how long a mark is believed without asking the ledger.
	// Zero: only while its owner is known to be alive.
	InProgressGrace time.Duration
	// MaxWait caps what a client may ask for with Prefer: wait=n. Zero: nobody
	// waits for an attempt of another process.
	MaxWait time.Duration
	// ConfirmReceipts asks the ledger before every replay. Otherwise only receipts
	// of another server are confirmed.
	ConfirmReceipts bool
	// RefusalsKept is how long the ledger remembers a refusal at least. From an hour
	// before, for clocks that differ, the ledger is asked before a refusal is
	// replayed: its key may have made an order since. Zero: for ever.
	RefusalsKept time.Duration
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
	started := in.o.Now()
	a, err := in.submit(ctx, c, wait, started, in.o.Ledger.Decide)
	in.o.Observer.Decided(a, err, in.o.Now().Sub(started))
	return a, err
}

// Defer accepts a command that is to be carried out later. The answer is
// Accepted, or what Submit would answer to a key that is known already.
func (in *Intake) Defer(ctx context.Context, c *Command) (Answer, error) {
	started := in.o.Now()
	a, err := in.submit(ctx, c, 0, started, in.o.Deferrals.Accept)
	if err == nil && a.Kind == InProgress && a.Layer == LayerLedger {
		a.Kind = Accepted
	}
	in.o.Observer.Decided(a, err, in.o.Now().Sub(started))
	return a, err
}

func (in *Intake) submit(ctx context.Context, c *Command, wait time.Duration, started time.Time, ask decideFunc) (Answer, error) {
	t := in.o.Tuning()
	deadline := started.Add(t.Budget)
	if c.Key == "" {
		return in.follow(ctx, c, Admission{}, t, deadline, ask)
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
// advice is not enough, and tells the filter how it ended. A ticket is finished
// here and nowhere else, whatever panics: a flight that nobody ends holds its key.
func (in *Intake) follow(ctx context.Context, c *Command, adm Admission, t Tuning, deadline time.Time, ask decideFunc) (Answer, error) {
	if adm.Advice == Joined {
		return in.join(ctx, adm, deadline)
	}
	end := End{Err: Undecided(OutcomeUnknown, ErrInternal)} // what a panic leaves: nothing is known
	defer func() {
		if adm.Ticket != nil {
			adm.Ticket.Finish(ctx, end)
		}
	}()
	var err error
	switch {
	case adm.Advice == Seen:
		end, err = in.replay(ctx, c, adm, t, deadline, ask)
	case adm.Advice == Running && adm.Age <= t.InProgressGrace:
		end = End{Answer: running(c, adm)}
	default:
		if adm.Advice == Running {
			in.o.Observer.Noticed(StaleMark, adm.Age)
		}
		end, err = in.decide(ctx, c, adm, deadline, ask)
	}
	return end.Answer, err
}

// running answers from a mark that is believed.
func running(c *Command, adm Admission) Answer {
	if adm.Digest != c.Digest {
		return Answer{Kind: Reused, Layer: adm.Layer, Age: adm.Age}
	}
	return Answer{Kind: InProgress, Layer: adm.Layer, Age: adm.Age, RetryAfter: askAgain(adm.Age)}
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

// forgetMargin is how far the clock of a gateway may be from the database's.
const forgetMargin = time.Hour

// forgettable tells whether the ledger may have forgotten what a receipt says. A
// filter keeps receipts for as long after their last use as after the first.
func (in *Intake) forgettable(r *Receipt, t *Tuning) bool {
	return r.State == Failed && t.RefusalsKept > 0 && in.o.Now().Sub(r.FirstSeen) > t.RefusalsKept-forgetMargin
}

// replay answers from a receipt, confirmed first where it may be of a server
// whose last commits a failover has lost, or of a refusal that is forgotten.
func (in *Intake) replay(ctx context.Context, c *Command, adm Admission, t Tuning, deadline time.Time, ask decideFunc) (End, error) {
	r := adm.Receipt
	forgettable := in.forgettable(&r, &t)
	if !t.ConfirmReceipts && !forgettable && r.Server != 0 && r.Server == in.o.Ledger.Identity() {
		return End{Answer: in.answer(c, Decision{Kind: Replayed, Receipt: r}, adm.Layer), Receipt: r}, nil
	}
	fctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	r, err := in.o.Ledger.Find(fctx, c.UserID, c.Key)
	switch {
	case err == nil:
		return End{Answer: in.answer(c, Decision{Kind: Replayed, Receipt: r}, LayerLedger), Mark: MarkReceipt, Receipt: r}, nil
	case errors.Is(err, ErrNotFound):
		if !forgettable {
			in.o.Observer.Noticed(ReceiptLost, max(0, in.o.Now().Sub(adm.Receipt.FirstSeen)))
		}
		return in.decide(ctx, c, adm, deadline, ask)
	case ctx.Err() != nil: // it is not those who joined that left
		return End{Err: errAbandoned}, Undecided(OutcomeUnknown, err)
	default:
		err = Undecided(OutcomeUnknown, err)
		return End{Err: err}, err
	}
}

// decide asks the ledger, detached from the client.
func (in *Intake) decide(ctx context.Context, c *Command, adm Admission, deadline time.Time, ask decideFunc) (End, error) {
	if err := ctx.Err(); err != nil {
		return End{Err: errAbandoned, Mark: MarkReleased}, Undecided(OutcomeNotCommitted, err)
	}
	dctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	d, err := ask(dctx, c)
	if err != nil {
		end := End{Err: err}
		if OutcomeOf(err) == OutcomeNotCommitted {
			end.Mark = MarkReleased
		}
		return end, err
	}
	a := in.answer(c, d, LayerLedger)
	if adm.Advice == Ours && (d.Kind == Replayed || d.Kind == Reused) {
		in.o.Observer.Noticed(FilterMissed, a.Age)
	}
	if d.Receipt.State == Processing || (d.Kind == Rejected && !d.Remembered) {
		return End{Answer: a, Mark: MarkReleased}, nil // nothing that the filter could answer with
	}
	return End{Answer: a, Mark: MarkReceipt, Receipt: d.Receipt}, nil
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
