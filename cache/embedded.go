package cache

import (
	"context"
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
	cancel context.CancelFunc
	clock  sync.WaitGroup
}

// OpenEmbedded starts one. Its entries expire: miniredis has no clock of its
// own, so this drives it.
func OpenEmbedded(opTimeout time.Duration) (*Embedded, error) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("start the embedded Redis: %w", err)
	}
	client, err := OpenClient(ClientOptions{Addrs: []string{server.Addr()}, OpTimeout: opTimeout})
	if err != nil {
		server.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &Embedded{Client: client, server: server, cancel: cancel}
	e.clock.Go(func() { e.tick(ctx) })
	return e, nil
}

func (e *Embedded) tick(ctx context.Context) {
	const step = 100 * time.Millisecond
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			e.server.SetTime(now)
			e.server.FastForward(now.Sub(last))
			last = now
		}
	}
}

// Close ends the client, the clock and the server.
func (e *Embedded) Close() error {
	err := e.Client.Close()
	e.cancel()
	e.clock.Wait()
	e.server.Close()
	return err
}
