package store

import (
	"context"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncegate/oncegate/order"
)

const beatInterval = time.Second

// heartbeat asks the database for its identity once a second, and, where the
// DSN lists several hosts, whether it still takes writes. It notices a failover
// also when all traffic is answered before the ledger, and it lets
// health checks be answered without a query each.
type heartbeat struct {
	s      *Store
	failed atomic.Pointer[error] // nil while the database answers
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (h *heartbeat) start() {
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	h.done.Go(func() {
		for pause(ctx, beatInterval) {
			err := h.once(ctx)
			if err == nil {
				h.failed.Store(nil)
				continue
			}
			if ctx.Err() == nil {
				h.failed.Store(&err)
			}
		}
	})
}

func (h *heartbeat) stop() {
	h.cancel()
	h.done.Wait()
}

func (h *heartbeat) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.s.o.ReadTimeout)
	defer cancel()
	if err := h.s.hosts.confirm(ctx, h.s.reads); err != nil {
		return h.s.translate("ask the server whether it takes writes", err)
	}
	var id string
	if err := h.s.reads.QueryRowContext(ctx, "SELECT "+h.s.d.identity).Scan(&id); err != nil {
		return h.s.translate("ask the server for its identity", err)
	}
	h.s.seen(ctx, serverID(id))
	return nil
}

// Health returns why the database did not answer the last heartbeat, or nil.
// It costs nothing. It is a second old at most, and as long as the next one takes.
func (s *Store) Health() error {
	if err := s.beat.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Identity is the server that last answered.
func (s *Store) Identity() order.ServerID { return order.ServerID(s.identity.Load()) }

// seen notes the server that answered. A change is a failover: receipts of the
// old server are confirmed from now on.
func (s *Store) seen(ctx context.Context, id order.ServerID) {
	if id == 0 {
		return
	}
	old := s.identity.Swap(uint64(id))
	if old != 0 && old != uint64(id) {
		s.metrics.failovers.Inc()
		s.o.Logger.WarnContext(ctx, "another database server answers now: answers of the old one are confirmed before they are replayed")
	}
}

// serverID shortens a server's identity; never zero for a non-empty text.
func serverID(identity string) order.ServerID {
	if identity == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(identity))
	return order.ServerID(max(1, h.Sum64()))
}
