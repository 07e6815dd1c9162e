package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxBody  = 8 << 20 // of one answer; more is a fault of the server
	maxIdle  = 16384   // connections kept for reuse
	bufBytes = 4096
)

// Options say where to and how long.
type Options struct {
	Target  *url.URL      // scheme and host; a path is put before every request's path
	Timeout time.Duration // of a request, from when it is sent; also of a dial
	TLS     *tls.Config   // for https; nil for the system's trust
}

// Client is a pool of connections to one target. Safe for concurrent use.
type Client struct {
	address string
	host    string
	prefix  string
	tls     *tls.Config
	timeout time.Duration
	dialer  net.Dialer

	mu     sync.Mutex
	idle   []*conn
	open   map[*conn]struct{}
	closed bool

	sent, dials, stale atomic.Int64
}

type conn struct {
	net.Conn
	raw    net.Conn // below TLS
	br     *bufio.Reader
	reused bool
}

// New returns a client. It opens nothing yet.
func New(o Options) (*Client, error) {
	if o.Target == nil || o.Target.Host == "" || (o.Target.Scheme != "http" && o.Target.Scheme != "https") {
		return nil, errors.New("the target must be an http or https URL")
	}
	c := &Client{
		address: o.Target.Host,
		host:    o.Target.Host,
		prefix:  strings.TrimSuffix(o.Target.EscapedPath(), "/"),
		timeout: o.Timeout,
		dialer:  net.Dialer{Timeout: o.Timeout, KeepAlive: -1},
		open:    map[*conn]struct{}{},
	}
	port := "80"
	if o.Target.Scheme == "https" {
		port = "443"
		c.tls = o.TLS.Clone()
		if c.tls == nil {
			c.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		if c.tls.ServerName == "" {
			c.tls.ServerName = o.Target.Hostname()
		}
		c.tls.NextProtos = []string{"http/1.1"}
	}
	if o.Target.Port() == "" {
		c.address = net.JoinHostPort(o.Target.Hostname(), port)
	}
	return c, nil
}

// Counters is what the client has done so far.
type Counters struct {
	Sent  int64 // requests handed to the kernel whole
	Dials int64 // connections asked for
	Stale int64 // idle connections found closed before they were used
}

// Counters returns what was done so far.
func (c *Client) Counters() Counters {
	return Counters{c.sent.Load(), c.dials.Load(), c.stale.Load()}
}

// Do sends a request once and waits for its answer, at most for timeout (zero:
// the client's own). The context bounds the dial; [Client.Close] ends the rest.
func (c *Client) Do(ctx context.Context, r *Request, timeout time.Duration) Exchange {
	if timeout <= 0 || timeout > c.timeout {
		timeout = c.timeout
	}
	x := Exchange{Begun: time.Now()}
	k, err := c.connection(ctx)
	if err != nil {
		x.Done = time.Now()
		x.fail(err)
		return x
	}
	x.Sent = time.Now()
	_ = k.SetDeadline(x.Sent.Add(timeout))
	n, err := k.Write(r.render(c.prefix, c.host))
	x.Wrote = n > 0
	if err == nil {
		c.sent.Add(1)
		err = x.read(k, r.Method)
	}
	x.Done = time.Now()
	if err != nil {
		x.fail(err)
		c.drop(k)
		return x
	}
	if x.close {
		c.drop(k)
	} else {
		c.put(k)
	}
	return x
}

// connection returns an idle connection that is still open, or a new one.
func (c *Client) connection(ctx context.Context) (*conn, error) {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, errClosed
		}
		n := len(c.idle)
		if n == 0 {
			c.mu.Unlock()
			return c.dial(ctx)
		}
		k := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		// A server may close an idle connection at any time. Looking first keeps
		// that from being taken for a lost request.
		if k.br.Buffered() == 0 && alive(k.raw) {
			k.reused = true
			return k, nil
		}
		c.stale.Add(1)
		c.drop(k)
	}
}

func (c *Client) dial(ctx context.Context) (*conn, error) {
	c.dials.Add(1)
	raw, err := c.dialer.DialContext(ctx, "tcp", c.address)
	if err != nil {
		return nil, &dialError{err}
	}
	k := &conn{Conn: raw, raw: raw}
	if c.tls != nil {
		t := tls.Client(raw, c.tls)
		hello, cancel := context.WithTimeout(ctx, c.timeout)
		err := t.HandshakeContext(hello)
		cancel()
		if err != nil {
			_ = raw.Close() // the handshake's error is the one that tells
			return nil, &dialError{err}
		}
		k.Conn = t
	}
	k.br = bufio.NewReaderSize(k.Conn, bufBytes)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = raw.Close()
		return nil, errClosed
	}
	c.open[k] = struct{}{}
	return k, nil
}

func (c *Client) put(k *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle) >= maxIdle {
		delete(c.open, k)
		_ = k.Close()
		return
	}
	c.idle = append(c.idle, k)
}

func (c *Client) drop(k *conn) {
	c.mu.Lock()
	delete(c.open, k)
	c.mu.Unlock()
	_ = k.Close()
}

// Close closes every connection. Requests that are under way end at once with
// [FaultAborted].
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for k := range c.open {
		_ = k.Close()
	}
	c.open, c.idle = map[*conn]struct{}{}, nil
}

// read reads one answer; informational ones before it are passed over.
func (x *Exchange) read(k *conn, method string) error {
	for {
		resp, err := http.ReadResponse(k.br, &http.Request{Method: method}) //nolint:bodyclose // it is read to its end, on a connection that is ours
		if err != nil {
			return err
		}
		if resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
		if err != nil {
			return err
		}
		if len(body) > maxBody {
			return fmt.Errorf("the answer is larger than %d bytes", maxBody)
		}
		x.Status, x.Header, x.Body = resp.StatusCode, resp.Header, body
		x.close = resp.Close || k.br.Buffered() > 0
		return nil
	}
}
