//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// profile gives the gateway of a path one more turn, which counts for nothing,
// and keeps a profile of the processor time that it spends there.
func (s *stage) profile(ctx context.Context, p *path, subject *target) error {
	long := max(time.Second, (3 * s.c.Window).Round(time.Second)) // pprof counts in seconds
	connections := p.connections[len(p.connections)-1]
	s.say("  profile with %d connections", connections)
	ctx, cancel := context.WithTimeout(ctx, long+time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.keepProfile(ctx, p.id, subject.admin, long) }()
	l := load{
		workers: connections, window: long + time.Second,
		make: func(i int) (worker, error) { return subject.worker(ctx, i) },
	}
	_, err := l.run(ctx)
	if err = errors.Join(err, <-done); err != nil {
		return err
	}
	return s.top(p)
}

// top writes the profile's first ten functions beside it.
func (s *stage) top(p *path) (err error) {
	from, err := os.Open(filepath.Join(s.c.Profiles, p.id+".pprof"))
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	defer func() { _ = from.Close() }() // only read
	to, err := os.Create(filepath.Join(s.c.Profiles, p.id+".top.txt"))
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return writeTop(to, p.id+", "+p.name, from)
}

func (s *stage) keepProfile(ctx context.Context, id, admin string, long time.Duration) (err error) {
	f, err := os.Create(filepath.Join(s.c.Profiles, id+".pprof")) //nolint:gosec // G304: the user names the directory, the paths are ours
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	status, err := get(ctx, client, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", admin, long/time.Second), f)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	return nil
}
