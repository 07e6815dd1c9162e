package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// backendTimeout is how long a gateway that does not answer is waited for.
const backendTimeout = time.Second

// acceptPause is how long files are waited for.
const acceptPause = 10 * time.Millisecond

// Balancer spreads connections over backends in turn. Safe for concurrent use.
type Balancer struct {
	listener net.Listener
	backends []string
	next     atomic.Uint64
	running  sync.WaitGroup
	over     chan struct{} // closed with it

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// NewBalancer starts a balancer in front of the addresses; it ends with the test.
func NewBalancer(tb testing.TB, backends []string) *Balancer {
	tb.Helper()
	b, err := listen("127.0.0.1:0", backends)
	if err != nil {
		tb.Fatalf("faultproxy: balancer: %v", err)
	}
	b.running.Go(func() {
		if err := b.accept(); err != nil {
			tb.Errorf("faultproxy: balancer: %v", err)
		}
	})
	tb.Cleanup(b.close)
	return b
}

// Balance is a balancer at an address of its own for as long as the process
// lives, for a process that does nothing else: each request takes two of its
// files. It returns only with an error.
func Balance(addr string, backends []string) error {
	b, err := listen(addr, backends)
	if err != nil {
		return fmt.Errorf("faultproxy: balancer: %w", err)
	}
	defer b.close()
	if err := b.accept(); err != nil {
		return fmt.Errorf("faultproxy: balancer: %w", err)
	}
	return nil
}

func listen(addr string, backends []string) (*Balancer, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Balancer{listener: listener, backends: backends, open: map[net.Conn]struct{}{}, over: make(chan struct{})}, nil
}

// accept serves connections until the balancer is closed. While there are no files
// for more, those who come wait in the kernel's queue.
func (b *Balancer) accept() error {
	for {
		conn, err := b.listener.Accept()
		switch {
		case err == nil:
			b.running.Go(func() { b.serve(conn) })
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, syscall.EMFILE):
			select {
			case <-time.After(acceptPause):
			case <-b.over:
				return nil
			}
		default:
			return err
		}
	}
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
	close(b.over)
	for c := range b.open {
		_ = c.Close()
	}
	b.mu.Unlock()
	_ = b.listener.Close()
	b.running.Wait()
}
