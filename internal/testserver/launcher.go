//go:build unix

package testserver

import (
	"runtime"
	"sync"
)

// launcher starts processes from one thread that stays alive. The signal that
// ends a server with its parent is sent when the parent's thread ends, not its
// process, and the Go runtime ends threads as it sees fit.
type launcher struct {
	mu       sync.Mutex
	requests chan launch
	ended    chan struct{}
}

type launch struct {
	start  func() error
	result chan error
}

// start calls the function, which starts a process, on that thread.
func (l *launcher) start(f func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests == nil {
		l.requests, l.ended = make(chan launch), make(chan struct{})
		go serveLaunches(l.requests, l.ended)
	}
	request := launch{start: f, result: make(chan error)}
	l.requests <- request
	return <-request.result
}

// stop ends the thread, and with it whatever it started that still runs.
func (l *launcher) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests == nil {
		return
	}
	close(l.requests)
	<-l.ended
	l.requests = nil
}

func serveLaunches(requests <-chan launch, ended chan<- struct{}) {
	defer close(ended)
	// Never unlocked: the thread ends with this goroutine.
	runtime.LockOSThread()
	for request := range requests {
		request.result <- request.start()
	}
}
