package faultproxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncegate/oncegate/internal/loopback"
)

// Proxy passes TCP connections on to an upstream address. Its methods may be
// called at any time and from any goroutine.
type Proxy struct {
	tb      testing.TB
	port    *loopback.Port
	weather *weather
	begin   func() conversation // of a new connection
	running sync.WaitGroup

	mu       sync.Mutex
	upstream string
	listener net.Listener // nil while connections are refused
	links    map[*link]struct{}
	closed   bool
}

// New starts a proxy that knows nothing of the protocol. It ends with the test.
func New(tb testing.TB, upstream string) *Proxy {
	tb.Helper()
	return start(tb, upstream, func() conversation { return bytesOnly{} })
}

func start(tb testing.TB, upstream string, begin func() conversation) *Proxy {
	tb.Helper()
	port, err := loopback.Reserve()
	if err != nil {
		tb.Fatalf("faultproxy: %v", err)
	}
	p := &Proxy{
		tb:       tb,
		port:     port,
		weather:  newWeather(),
		begin:    begin,
		upstream: upstream,
		links:    map[*link]struct{}{},
	}
	tb.Cleanup(p.close)
	p.Pass()
	return p
}

// Addr is where the proxy listens, as host:port.
func (p *Proxy) Addr() string { return p.port.Addr() }

// Pass ends every fault: bytes flow, and those that were held are delivered.
func (p *Proxy) Pass() { p.change(true, false, 0) }

// Delay has every byte take d in each direction.
func (p *Proxy) Delay(d time.Duration) { p.change(true, false, d) }

// BlackHole holds every byte in both directions. Connections are accepted and
// stay open. As with a network that was parted and heals, what was held is
// delivered at the next [Proxy.Pass], even if its sender has gone away.
func (p *Proxy) BlackHole() { p.change(true, true, 0) }

// Refuse cuts all connections and refuses new ones, as if the server had died.
func (p *Proxy) Refuse() {
	p.change(false, false, 0)
	p.Cut()
}

// Cut resets all connections that there are; new ones are not affected.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// Redirect sends new connections to another address; those that there are stay
// where they are, as after a failover.
func (p *Proxy) Redirect(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

func (p *Proxy) change(listening, held bool, delay time.Duration) {
	p.tb.Helper()
	p.weather.set(held, delay)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.listen(listening && !p.closed); err != nil {
		p.tb.Errorf("faultproxy: %v", err)
	}
}

// listen opens or closes the listener. The port stays reserved meanwhile.
func (p *Proxy) listen(on bool) error {
	switch {
	case on && p.listener == nil:
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", p.Addr())
		if err != nil {
			return err
		}
		p.listener = listener
		p.running.Go(func() { p.accept(listener) })
	case !on && p.listener != nil:
		listener := p.listener
		p.listener = nil
		// A child that is being forked has the socket too, and would go on listening.
		return errors.Join(deafen(listener), listener.Close())
	}
	return nil
}

// deafen ends the listening of a socket, whoever else has it.
func deafen(listener net.Listener) error {
	socket, ok := listener.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) {
		_ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) // a kernel that cannot leaves it to the end of the socket
	})
}

func (p *Proxy) listens(listener net.Listener) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listener == listener
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			if p.listens(listener) {
				p.tb.Errorf("faultproxy: accept: %v", err)
			}
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	ctx, end := context.WithCancel(context.Background())
	l := &link{client: client, weather: p.weather, done: ctx.Done(), end: end}
	upstream, ok := p.enter(l)
	if !ok {
		l.cut()
		return
	}
	defer p.leave(l)
	l.run(ctx, upstream, p.begin())
}

// enter registers a link, unless the proxy refuses connections by now.
func (p *Proxy) enter(l *link) (upstream string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return "", false
	}
	p.links[l] = struct{}{}
	return p.upstream, true
}

func (p *Proxy) leave(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Refuse()
	p.running.Wait()
	if err := p.port.Release(); err != nil {
		p.tb.Errorf("faultproxy: %v", err)
	}
}
