package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
)

// maxHeaderBytes bounds the header of a request; a token and a key fit well.
const maxHeaderBytes = 32 << 10

// listener is one HTTP server on one address.
type listener struct {
	http *http.Server
	ln   net.Listener
}

func newListener(addr string, h http.Handler, t Timeouts, log *slog.Logger) *listener {
	t = t.withDefaults()
	return &listener{http: &http.Server{
		Addr:                         addr,
		Handler:                      h,
		ReadHeaderTimeout:            t.ReadHeader,
		ReadTimeout:                  t.Read,
		WriteTimeout:                 t.Write,
		IdleTimeout:                  t.Idle,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
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
	if err := l.http.Serve(l.ln); !errors.Is(err, http.ErrServerClosed) {
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
