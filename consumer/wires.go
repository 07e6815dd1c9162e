package consumer

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// farewell is how long a client may take to part from its broker in order.
const farewell = 5 * time.Second

var errHungUp = errors.New("the client has hung up")

// wires are the connections of one client of a broker. Such clients wait without
// a deadline for some answers, as that to a publication that a broker has put off;
// who holds their wires can free them. Safe for concurrent use.
type wires struct {
	dialing time.Duration // bounds a dial
	// readLimit bounds a read that the client has given a longer deadline. Nil:
	// nothing does.
	readLimit func(now time.Time) time.Time

	mu         sync.Mutex
	open       map[*wire]struct{}
	closed     bool
	unanswered func(addr string, fault error)
}

type wire struct {
	net.Conn
	of   *wires
	addr string // as it was dialled
}

// Dial opens a connection, unless close was called.
func (w *wires) Dial(network, addr string) (net.Conn, error) {
	if w.isClosed() {
		return nil, errHungUp
	}
	dialer := net.Dialer{Timeout: w.dialing}
	conn, err := dialer.Dial(network, addr)
	if err != nil {
		return nil, err
	}
	it := &wire{Conn: conn, of: w, addr: addr}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errors.Join(errHungUp, conn.Close())
	}
	if w.open == nil {
		w.open = map[*wire]struct{}{}
	}
	w.open[it] = struct{}{}
	return it, nil
}

func (w *wires) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// cut frees all that waits now: its connections break. The client may open others.
func (w *wires) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for it := range w.open {
		_ = it.Conn.Close() // whoever reads or writes is told
	}
	clear(w.open)
}

// close cuts, and nothing is opened any more.
func (w *wires) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.cut()
}

// hasten has the reads that are under way end by the limit, which was a later one
// when they began.
func (w *wires) hasten() {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := w.readLimit(time.Now())
	for it := range w.open {
		_ = it.Conn.SetReadDeadline(limit) // it fails on a closed one only
	}
}

// watch has the reads that end unanswered told of, and whom they waited for.
func (w *wires) watch(unanswered func(addr string, fault error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unanswered = unanswered
}

// within calls end, and cuts what it waits for once the farewell is over.
func (w *wires) within(end func() error) error {
	limit := time.AfterFunc(farewell, w.close)
	defer limit.Stop()
	defer w.close()
	return end()
}

// Read implements [net.Conn].
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.of.mu.Lock()
		unanswered := w.of.unanswered
		w.of.mu.Unlock()
		if unanswered != nil {
			unanswered(w.addr, err)
		}
	}
	return n, err
}

// Close implements [net.Conn].
func (w *wire) Close() error {
	w.of.mu.Lock()
	delete(w.of.open, w)
	w.of.mu.Unlock()
	return w.Conn.Close()
}

// SetReadDeadline implements [net.Conn].
func (w *wire) SetReadDeadline(t time.Time) error {
	if w.of.readLimit == nil {
		return w.Conn.SetReadDeadline(t)
	}
	w.of.mu.Lock() // for hasten
	defer w.of.mu.Unlock()
	if limit := w.of.readLimit(time.Now()); t.After(limit) {
		t = limit
	}
	return w.Conn.SetReadDeadline(t)
}
