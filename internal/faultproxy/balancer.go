package faultproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// backendTimeout is how long a gateway that does not answer is waited for.
const backendTimeout = time.Second

// Balancer spreads connections over backends in turn. Safe for concurrent use.
type Balancer struct {
	listener net.Listener
	backends []string
	next     atomic.Uint64
	running  sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// NewBalancer starts a balancer in front of the addresses; it ends with the test.
func NewBalancer(tb testing.TB, backends []string) *Balancer {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("faultproxy: balancer: %v", err)
	}
	b := &Balancer{listener: listener, backends: backends, open: map[net.Conn]struct{}{}}
	b.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					tb.Errorf("faultproxy: balancer: %v", err)
				}
				return
			}
			b.running.Go(func() { b.serve(conn) })
		}
	})
	tb.Cleanup(b.close)
	return b
}

// Addr is where customers connect.
func (b *Balancer) Addr() string { return b.listener.Addr().String() }

func (b *Balancer) serve(client net.Conn) {
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
func (b *Balancer) dial() net.Conn {
	for range b.backends {
		address := b.backends[b.next.Add(1)%uint64(len(b.backends))]
		server, err := (&net.Dialer{Timeout: backendTimeout}).DialContext(context.Background(), "tcp", address)
		if err == nil {
			return server
		}
	}
	return nil
}

// enter notes a connection, or closes it when the balancer is closed.
func (b *Balancer) enter(c net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		_ = c.Close()
		return false
	}
	b.open[c] = struct{}{}
	return true
}

func (b *Balancer) leave(c net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, c)
	_ = c.Close()
}

func (b *Balancer) close() {
	b.mu.Lock()
	b.closed = true
	for c := range b.open {
		_ = c.Close()
	}
	b.mu.Unlock()
	_ = b.listener.Close()
	b.running.Wait()
}
