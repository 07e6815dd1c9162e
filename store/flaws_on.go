//go:build seededbugs

package store

import (
	"context"
	"errors"
	"time"

	"github.com/oncegate/oncegate/order"
)

// Mistakes that this package must not make, switched on by tests.
var (
	// flawPlainReread resolves an unknown commit by a plain read instead of
	// running the transaction again. The old session may still commit.
	flawPlainReread bool
	// flawStatementAfterError goes on with a transaction after one of its
	// statements failed. After a lock wait time-out that commits one half.
	flawStatementAfterError bool
)

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
