package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
)

const (
	// maxHeaderBytes bounds the header of a request; a token and a key fit well.
	maxHeaderBytes = 32 << 10
	// maxStreams bounds the requests at once of one HTTP/2 connection.
	maxStreams = 128
)

// listener is one HTTP server on one address, over TLS if it has certificates.
type listener struct {
	http *http.Server
	tls  bool
	ln   net.Listener
}

func newListener(addr string, h http.Handler, t Timeouts, certs *Certificates, log *slog.Logger) *listener {
	t = t.withDefaults()
	l := &listener{http: &http.Server{
		Addr:                         addr,
		Handler:                      oneBodyPerConnection(h),
		ReadHeaderTimeout:            t.ReadHeader,
		ReadTimeout:                  t.Read,
		WriteTimeout:                 t.Write,
		IdleTimeout:                  t.Idle,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			// The time-outs of streams only ask for a reset, which waits behind what a
			// client does not read. Then this ends the connection.
			WriteByteTimeout: t.Write,
		},
	}}
	if certs != nil {
		l.tls, l.http.TLSConfig = true, certs.config()
	}
	return l
}

// oneBodyPerConnection ends a connection after a request in chunks. One that
// declares a length as well looks the same here, and a proxy in front that went
// by the length would send the rest of its body as somebody's next request (RFC
// 9112, section 6.1, wants such a connection closed). HTTP/1.0 has no chunks:
// net/http passes over them there without a trace, and what a proxy took for them
// would be the next request. So a request of HTTP/1.0 is the last one as well.
func oneBodyPerConnection(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TransferEncoding != nil || !r.ProtoAtLeast(1, 1) {
			w.Header()["Connection"] = []string{"close"}
		}
		h.ServeHTTP(w, r)
	})
}

// Listen binds the address. Call it before Serve.
func (l *listener) Listen(ctx context.Context) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.http.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	l.ln = ln
	return nil
}

// Addr is where it listens, with the port that was found for port 0.
func (l *listener) Addr() net.Addr { return l.ln.Addr() }

// Serve answers until Shutdown, and then returns nil.
func (l *listener) Serve() error {
	serve := l.http.Serve
	if l.tls {
		serve = func(ln net.Listener) error { return l.http.ServeTLS(ln, "", "") }
	}
	if err := serve(l.ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.ln.Addr(), err)
	}
	return nil
}

// stop takes no more connections and waits for the requests under way. When ctx
// ends first, it cuts their connections; their work goes on where it is detached.
func (l *listener) stop(ctx context.Context) error {
	if l.ln != nil {
		defer func() { _ = l.ln.Close() }() // for a listener that was never served; closed already otherwise
	}
	if err := l.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("drain %s: %w", l.http.Addr, err), l.http.Close())
	}
	return nil
}
