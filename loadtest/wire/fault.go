package wire

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// Fault says why there was no answer.
type Fault uint8

// The faults.
const (
	NoFault      Fault = iota
	FaultTimeout       // no answer in time, or no connection in time
	FaultRefused       // nobody listens; nothing was sent
	FaultBroken        // the connection broke; whether the request arrived is not known
	FaultClient        // this machine ran out of ports, sockets or buffers; nothing was sent
	FaultAborted       // the run was stopped
)

// String names the fault.
func (f Fault) String() string {
	return [...]string{"none", "timeout", "refused", "broken", "client limit", "aborted"}[f]
}

var errClosed = errors.New("the client is closed")

// dialError marks an error that came before anything was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func (x *Exchange) fail(err error) {
	x.Err = err
	x.Fault = classify(err)
}

func classify(err error) Fault {
	var timeout net.Error
	switch {
	case errors.Is(err, errClosed), errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled):
		return FaultAborted
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE),
		errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EADDRINUSE):
		return FaultClient
	case errors.Is(err, syscall.ECONNREFUSED):
		return FaultRefused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return FaultTimeout
	default:
		return FaultBroken
	}
}
