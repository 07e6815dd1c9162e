package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Backlog is what compaction still has to do.
type Backlog struct {
	// Records beyond the age, at most [BacklogLimit]: more are not counted.
	Records int64
	// Behind is how far beyond the age the oldest of them is; zero without one.
	Behind time.Duration
}

// BacklogLimit is how far records are counted.
const BacklogLimit = 10_000

// backlogEvery is how often WatchBacklog looks.
const backlogEvery = time.Minute

// CompactionBacklog looks for records older than an age that no complete run of
// [Store.Compact] has seen. It reads at most [BacklogLimit] entries of an index.
func (s *Store) CompactionBacklog(ctx context.Context, age time.Duration) (b Backlog, err error) {
	from, cutoff, err := s.compactionWindow(ctx, age)
	if err != nil {
		return b, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.ReadTimeout)
	defer cancel()
	const due = " FROM idempotency_records WHERE created_at >= ? AND created_at < ? ORDER BY created_at LIMIT ?"
	window := func(limit int) []any { return []any{s.d.instant(from), s.d.instant(cutoff), limit} }
	var oldest instant
	err = s.reads.QueryRowContext(ctx, "SELECT created_at"+due, window(1)...).Scan(&oldest)
	if errors.Is(err, sql.ErrNoRows) {
		return b, nil
	}
	if err != nil {
		return b, s.translate("find the oldest record to compact", err)
	}
	err = s.reads.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT created_at"+due+") AS due", window(BacklogLimit)...).Scan(&b.Records)
	b.Behind = cutoff.Sub(oldest.Time)
	return b, s.translate("count the records to compact", err)
}

// WatchBacklog publishes the backlog of compaction once a minute, until ctx ends.
// What the database does not answer stays as it was.
func (s *Store) WatchBacklog(ctx context.Context, age func() time.Duration) {
	for {
		if b, err := s.CompactionBacklog(ctx, age()); err == nil {
			s.metrics.backlog.Set(float64(b.Records))
			s.metrics.behind.Set(b.Behind.Seconds())
		}
		if !pause(ctx, backlogEvery) {
			return
		}
	}
}
