package cache

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Embedded is a Redis within the process, for trying and for tests. It is as
// forgetful as the process.
type Embedded struct {
	Client redis.UniversalClient
	server *miniredis.Miniredis
	stop   context.CancelFunc
	clock  sync.WaitGroup
}

const (
	// embeddedStep is how precise the life of an entry is.
	embeddedStep = time.Second
	// embeddedEntries bounds the memory. Beyond it everything is forgotten,
	// which costs questions to the database and nothing else.
	embeddedEntries = 50_000
)

// OpenEmbedded starts one. It listens on the loopback interface, so it has a
// password that only this process knows. Its entries expire: miniredis has no
// clock of its own, so this drives it.
func OpenEmbedded(opTimeout time.Duration) (*Embedded, error) {
	server := miniredis.NewMiniRedis()
	password := rand.Text()
	server.RequireAuth(password)
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("start the embedded Redis: %w", err)
	}
	client, err := OpenClient(ClientOptions{Addrs: []string{server.Addr()}, Password: password, OpTimeout: opTimeout})
	if err != nil {
		server.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &Embedded{Client: client, server: server, stop: cancel}
	e.clock.Go(func() { e.tick(ctx) })
	return e, nil
}

func (e *Embedded) tick(ctx context.Context) {
	ticker := time.NewTicker(embeddedStep)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			e.advance(ctx, now, now.Sub(last), embeddedEntries)
			last = now
		}
	}
}

// advance lets time pass in the server.
func (e *Embedded) advance(ctx context.Context, now time.Time, passed time.Duration, limit int64) {
	e.server.SetTime(now)
	e.server.FastForward(passed)
	// Asked over the wire: the server itself only lists and sorts all keys.
	if n, err := e.Client.DBSize(ctx).Result(); err == nil && n > limit {
		e.server.FlushAll()
	}
}

// Close ends the clock, the client and the server.
func (e *Embedded) Close() error {
	e.stop()
	e.clock.Wait()
	defer e.server.Close()
	if err := e.Client.Close(); err != nil {
		return fmt.Errorf("close the client of the embedded Redis: %w", err)
	}
	return nil
}
