package cache

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// noticeEvery is how often an entry that cannot be believed makes a line in the
// log; the metrics count them all.
const noticeEvery = time.Minute

// notices logs what is wrong with entries: not a fault of Redis, so no breaker
// tells of it, but something that an operator must hear of once.
type notices struct {
	logger *slog.Logger
	now    func() time.Time
	mu     sync.Mutex
	last   map[reason]time.Time
}

func newNotices(l *slog.Logger, now func() time.Time) *notices {
	return &notices{logger: l, now: now, last: map[reason]time.Time{}}
}

func (n *notices) entry(ctx context.Context, r reason) {
	switch r {
	case reasonWrongType, reasonUnreadable, reasonForged, reasonVersion, reasonFuture:
	default:
		return
	}
	if n.due(r) {
		n.logger.WarnContext(ctx, "an entry in Redis is not believed, the database is asked", "reason", string(r))
	}
}

func (n *notices) due(r reason) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	if last, ok := n.last[r]; ok && now.Sub(last) < noticeEvery {
		return false
	}
	n.last[r] = now
	return true
}
