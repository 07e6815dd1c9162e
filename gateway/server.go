package gateway

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync/atomic"
	"time"
)

// Server is the public listener: Listen, Serve, and in the end Shutdown.
type Server struct {
	*listener
	o        Options
	bodies   bodies
	rates    *rates
	refunds  *refunds
	logKey   []byte
	inFlight atomic.Int64
}

// New makes a server that does not listen yet.
func New(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	rates, err := newRates(o.RateUsers, o.Now)
	if err != nil {
		return nil, err
	}
	refunds, err := newRefunds()
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, rates: rates, refunds: refunds, logKey: o.LogHashKey}
	if len(s.logKey) == 0 {
		s.logKey = make([]byte, 32)
		_, _ = rand.Read(s.logKey) // never fails (crypto/rand, Go 1.24)
	}
	engine, err := s.routes()
	if err != nil {
		return nil, err
	}
	s.listener = newListener(o.Addr, engine, o.Timeouts, o.Certificates, o.Logger)
	return s, nil
}

// Handler answers requests, for tests and for servers of one's own.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Shutdown makes the gateway not ready, still takes requests for the drain
// delay, and then answers what is under way, all under ctx. What the handlers
// use must outlive it.
func (s *Server) Shutdown(ctx context.Context) error {
	s.o.Health.Drain()
	if s.o.DrainDelay > 0 {
		timer := time.NewTimer(s.o.DrainDelay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return s.stop(ctx)
}
