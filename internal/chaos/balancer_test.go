//go:build linux

package chaos

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// balancer spreads connections over the gateways in turn, passing over those
// that refuse, as the one in front of a real deployment does. It knows bytes
// only: a gateway that is frozen keeps its connections.
type balancer struct {
	listener net.Listener
	backends []string
	next     atomic.Uint64
	running  sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

func newBalancer(t *testing.T, backends []string) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &balancer{listener: listener, backends: backends, open: map[net.Conn]struct{}{}}
	b.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("balancer: %v", err)
				}
				return
			}
			b.running.Go(func() { b.serve(conn) })
		}
	})
	t.Cleanup(b.close)
	return b
}

func (b *balancer) serve(client net.Conn) {
	if !b.enter(client) {
		return
	}
	defer b.leave(client)
	server := b.dial()
	if server == nil || !b.enter(server) {
		return
	}
	defer b.leave(server)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0]) // whichever way ends first ends both
			_ = client.Close()
			_ = server.Close()
		})
	}
	both.Wait()
}

// dial connects to the next gateway that does not refuse; nil when all do.
func (b *balancer) dial() net.Conn {
	for range b.backends {
		address := b.backends[b.next.Add(1)%uint64(len(b.backends))]
		server, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", address)
		if err == nil {
			return server
		}
	}
	return nil
}

// enter notes a connection, or closes it when the balancer is closed.
func (b *balancer) enter(c net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		_ = c.Close()
		return false
	}
	b.open[c] = struct{}{}
	return true
}

func (b *balancer) leave(c net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, c)
	_ = c.Close()
}

func (b *balancer) close() {
	b.mu.Lock()
	b.closed = true
	for c := range b.open {
		_ = c.Close()
	}
	b.mu.Unlock()
	_ = b.listener.Close()
	b.running.Wait()
}
