//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// measurement is a path that compares nothing: it tells figures of the gateway
// alone. It is only taken when it is named.
type measurement struct {
	id   string
	take func(s *stage, ctx context.Context) ([]Sheet, error)
}

func measurements() []measurement {
	return []measurement{
		{"memory", (*stage).memory},
		{"latency", (*stage).latency},
		{"storm", (*stage).storms},
		{"recovery", (*stage).recoveries},
	}
}

// known are the ids of all that can be measured.
func (c *Config) known() []string {
	all := ids(c.paths())
	if c.Against == "" {
		for _, m := range measurements() {
			all = append(all, m.id)
		}
	}
	return all
}

// figures takes the measurements that were named.
func (s *stage) figures(ctx context.Context) (sheets []Sheet, err error) {
	for _, m := range measurements() {
		if !slices.Contains(s.c.Paths, m.id) {
			continue
		}
		s.say("%s", m.id)
		found, err := m.take(s, ctx)
		if err = errors.Join(err, s.flush(ctx)); err != nil {
			return nil, fmt.Errorf("%s: %w", m.id, err)
		}
		for i := range found {
			found[i].ID = m.id
		}
		sheets = append(sheets, found...)
	}
	return sheets, nil
}

// flush empties Redis: receipts of one path are of no use to the next.
func (s *stage) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return s.redis.FlushAll(ctx).Err()
}
