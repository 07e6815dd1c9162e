//go:build seededbugs

package store

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/oncegate/oncegate/order"
)

// Mistakes that this package must not make. The environment switches one on.
var (
	// flawPlainReread resolves an unknown commit by a plain read instead of
	// running the transaction again. The old session may still commit.
	flawPlainReread = flaw("plain-reread")
	// flawStatementAfterError goes on with a transaction after one of its
	// statements failed. After a lock wait time-out that commits one half.
	flawStatementAfterError = flaw("statement-after-error")
	// flawReceiptBeforeCommit answers, and so has the receipt written to Redis,
	// before the transaction is committed.
	flawReceiptBeforeCommit = flaw("receipt-before-commit")
	// flawLockAfterInsert takes the user's lock after rows that refer to the
	// user were inserted, instead of before anything else.
	flawLockAfterInsert = flaw("lock-after-insert")
	// flawExpiredKeyIsNew forgets a key together with its answer.
	flawExpiredKeyIsNew = flaw("expired-key-is-new")
)

func flaw(name string) bool { return os.Getenv("ONCEGATE_TEST_FLAW") == name }

func (w *worker) plainReread(p *pending) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r, err := w.s.Find(ctx, p.cmd.UserID, p.cmd.Key)
	switch {
	case err == nil:
		p.deliver(order.Decision{Kind: order.Replayed, Receipt: r, Remembered: true}, nil)
	case errors.Is(err, order.ErrNotFound):
		p.unknown = false
	}
}

func (w *worker) answerEarly(group []*pending, outcomes []outcome) {
	if !flawReceiptBeforeCommit {
		return
	}
	for i, p := range group {
		outcomes[i].deliver(w.s, p)
	}
}

// lateLock reads the user's row without a lock: the first one on it is that of
// the update at the end.
func lateLock(forUpdate string) string {
	if flawLockAfterInsert {
		return ""
	}
	return forUpdate
}

func (t *transaction) forgetKeys(keys []pair) error {
	if !flawExpiredKeyIsNew || len(keys) == 0 {
		return nil
	}
	for _, text := range []string{"DELETE FROM idempotency_records WHERE ", "UPDATE orders SET idempotency_key = NULL WHERE "} {
		t.q.reset(text)
		t.q.pairs("idempotency_key", sortedPairs(keys))
		if _, err := t.conn.ExecContext(t.ctx, string(t.q.text), t.q.args...); err != nil {
			return err
		}
	}
	return nil
}
