package ordertest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oncegate/oncegate/order"
)

var _ order.Deferrals = (*Ledger)(nil)

// maxAttempts is how often an accepted command is tried that is refused for good.
const maxAttempts = 5

// waiting is a command that was accepted and not carried out.
type waiting struct {
	cmd      *order.Command
	attempts int
}

// Accept implements [order.Deferrals]. It counts as a Decide and is held and
// failed like one.
func (l *Ledger) Accept(ctx context.Context, c *order.Command) (order.Decision, error) {
	before, after, err := l.start(ctx, c)
	if err != nil {
		return order.Decision{}, err
	}
	if before != nil {
		if err := before(c); err != nil {
			return order.Decision{}, undecided(err)
		}
	}
	d, err := l.data.accept(c, l.options(false))
	if err == nil && after != nil {
		if err := after(c, d); err != nil {
			return order.Decision{}, undecided(err)
		}
	}
	return d, err
}

// CarryOut decides what was accepted, in that order, until nothing is left. It
// ends with the first error, and may be called again: a command that is refused
// for good ends as failed after some attempts.
func (l *Ledger) CarryOut(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", order.ErrUnavailable, err)
		}
		job := l.data.next()
		if job == nil {
			return nil
		}
		if err := l.carryOut(job); err != nil {
			return err
		}
	}
}

func (l *Ledger) carryOut(job *waiting) error {
	l.mu.Lock()
	before := l.before
	l.mu.Unlock()
	if before != nil {
		if err := before(job.cmd); err != nil {
			if errors.Is(err, order.ErrInternal) && order.OutcomeOf(err) == order.OutcomeNotCommitted && l.data.exhausted(job) {
				l.data.fail(job, l.render)
				return nil
			}
			return err
		}
	}
	_, err := l.data.decide(job.cmd, l.options(true))
	return err
}

func (l *Ledger) options(deferred bool) decideOptions {
	l.mu.Lock()
	defer l.mu.Unlock()
	return decideOptions{render: l.render, at: l.clock(), remember: l.remember, provision: l.provision, deferred: deferred}
}

// CountDeferred returns how many accepted commands of a user wait.
func (l *Ledger) CountDeferred(_ context.Context, userID string) (int, error) {
	l.data.mu.Lock()
	defer l.data.mu.Unlock()
	n := 0
	for _, w := range l.data.waiting {
		if w.cmd.UserID == userID {
			n++
		}
	}
	return n, nil
}

func (t *tables) accept(c *order.Command, o decideOptions) (order.Decision, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.account(c.UserID, o.provision); err != nil {
		return order.Decision{}, err
	}
	if d, known := t.known(c); known {
		return d, nil
	}
	r := t.receipt(c, o, order.Processing, order.Response{})
	t.records[keyOf{c.UserID, string(c.Key)}] = r
	t.waiting = append(t.waiting, &waiting{cmd: c})
	return order.Decision{Kind: order.InProgress, Receipt: r, Remembered: true}, nil
}

// next returns the command that waits longest. It stays on the list until its
// answer is recorded, so that two workers may get the same: the record decides.
func (t *tables) next() *waiting {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return nil
	}
	return t.waiting[0]
}

// exhausted counts an attempt and tells whether it was the last.
func (t *tables) exhausted(job *waiting) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	job.attempts++
	return job.attempts >= maxAttempts
}

func (t *tables) fail(job *waiting, render order.Renderer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := keyOf{job.cmd.UserID, string(job.cmd.Key)}
	if r := t.records[k]; r.State == order.Processing {
		r.State = order.Failed
		r.Response = render.Rejected(job.cmd.Operation, order.Rejection{Code: order.ExecutionFailed})
		t.records[k] = r
	}
	t.settle(job.cmd.UserID, job.cmd.Key)
}

// settle takes a command off the list.
func (t *tables) settle(userID string, key order.Key) {
	t.waiting = slices.DeleteFunc(t.waiting, func(w *waiting) bool { return w.cmd.UserID == userID && w.cmd.Key == key })
}
