package faultproxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// dialTimeout bounds the connection to the upstream.
const dialTimeout = 10 * time.Second

// piece is what is passed on as one: a command, a reply, or any bytes.
type piece struct {
	data   []byte
	readAt time.Time
	asked  any  // what the hook is asked about; nil for what is not a command
	push   bool // sent by the server without being asked
}

// conversation is one connection in the eyes of a protocol.
type conversation interface {
	// request and reply read the next piece from the client and the server.
	request(*bufio.Reader) (piece, error)
	reply(*bufio.Reader) (piece, error)
	// decide says what becomes of a command.
	decide(piece) Action
	// refuse encodes an error as the answer to a command.
	refuse(piece, AnswerError) []byte
	// again encodes what a Resend sends after the command.
	again(piece, Resend) resending
	// replies returns what matches replies to commands.
	replies(*link) replies
}

// replies delivers what the server sends, in order, as the commands' actions
// demand.
type replies interface {
	// expect is called before a command is forwarded, answer and cut instead
	// of forwarding one.
	expect(piece, Action)
	answer([]byte)
	cut()
	// resend is called before a command is forwarded that is to be sent again.
	resend(resending)
	// deliver runs until the pieces end.
	deliver(<-chan piece)
}

// link is a client's connection and the one to the upstream that belongs to it.
type link struct {
	client  net.Conn
	weather *weather
	done    <-chan struct{} // closed by end
	end     context.CancelFunc
	writing sync.Mutex // of the client

	mu     sync.Mutex
	server net.Conn
	ended  bool
}

// run passes bytes until the server has closed or the link is cut.
func (l *link) run(ctx context.Context, upstream string, c conversation) {
	defer l.cut()
	if !l.dial(ctx, upstream) {
		return
	}
	r := c.replies(l)
	requests, answers := make(chan piece, 64), make(chan piece, 64)
	var running sync.WaitGroup
	running.Go(func() { l.read(l.client, c.request, requests) })
	running.Go(func() { l.read(l.server, c.reply, answers) })
	running.Go(func() { l.forward(c, r, requests) })
	r.deliver(answers)
	l.finish()
	running.Wait()
}

func (l *link) dial(ctx context.Context, upstream string) bool {
	server, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", upstream)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended { // cut meanwhile, when there was no server to close yet
		reset(server)
		return false
	}
	l.server = server
	return true
}

// read splits what a connection sends into pieces until it ends.
func (l *link) read(from net.Conn, next func(*bufio.Reader) (piece, error), to chan<- piece) {
	defer close(to)
	r := bufio.NewReaderSize(from, 32<<10)
	for {
		p, err := next(r)
		if err != nil {
			return
		}
		p.readAt = time.Now()
		select {
		case to <- p:
		case <-l.done:
			return
		}
	}
}

// forward passes the client's pieces on to the server. When the client has
// closed, what it had sent is still forwarded, late or not, and then the
// server is told of the end.
func (l *link) forward(c conversation, r replies, requests <-chan piece) {
	for p := range requests {
		if !l.weather.wait(p.readAt, l.done) {
			return
		}
		if !l.act(c, r, p) {
			return
		}
	}
	if half, ok := l.server.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // an error means that the server is gone
	}
}

// act does with one piece what the hook says; false ends the forwarding.
func (l *link) act(c conversation, r replies, p piece) bool {
	action := c.decide(p)
	switch a := action.(type) {
	case AnswerError:
		r.answer(c.refuse(p, a))
		return true
	case DelayForward:
		if !hold(a.For, a.Until, l.done) {
			return false
		}
		action = Pass
	case Resend:
		r.resend(c.again(p, a))
		action = Pass
	case Verdict:
		if a == CutBefore {
			r.cut()
			return false
		}
	}
	if p.asked != nil {
		r.expect(p, action)
	}
	_, err := l.server.Write(p.data)
	return err == nil
}

// toClient delivers bytes to the client. It may have gone away; the server is
// still listened to, as its own end shows.
func (l *link) toClient(data []byte) {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, _ = l.client.Write(data)
}

// cut resets both connections. What was not delivered is lost.
func (l *link) cut() {
	l.shut(reset)
}

// finish closes what the server has closed. What is still held for it cannot
// reach it any more; the client sees an orderly end.
func (l *link) finish() {
	l.shut(func(conn net.Conn) { _ = conn.Close() })
}

// shut ends the link once: a cut is not softened by the end that follows.
func (l *link) shut(closeClient func(net.Conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	l.end()
	closeClient(l.client)
	if l.server != nil {
		reset(l.server)
	}
}

// reset closes a connection with RST, so that the peer sees a failure and not
// an orderly end.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it then ends with FIN, which is a cut as well
	}
	_ = conn.Close()
}

// bytesOnly is the conversation of a proxy that knows no protocol.
type bytesOnly struct{}

func (bytesOnly) request(r *bufio.Reader) (piece, error) { return chunk(r) }
func (bytesOnly) reply(r *bufio.Reader) (piece, error)   { return chunk(r) }
func (bytesOnly) decide(piece) Action                    { return Pass }
func (bytesOnly) refuse(piece, AnswerError) []byte       { return nil }
func (bytesOnly) again(piece, Resend) resending          { return resending{} }
func (bytesOnly) replies(l *link) replies                { return &streamReplies{link: l} }

// chunk reads whatever has arrived.
func chunk(r *bufio.Reader) (piece, error) {
	if _, err := r.Peek(1); err != nil {
		return piece{}, err
	}
	data := make([]byte, r.Buffered())
	_, err := io.ReadFull(r, data)
	return piece{data: data}, err
}
