package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncegate/oncegate/configs"
)

const (
	relayRoom = 4096 // lines
	// For how long it is waited in the end, in looks: of a machine that stands still
	// each sees one moment only.
	relayLooks     = 20  // at a reader who takes nothing
	relayLooksEver = 100 // at one who is slow
	relayLook      = 50 * time.Millisecond
)

// relay writes a log to somebody who may not read it: a collector that hangs at the
// other end of a pipe. A request's line is written before its answer is sent, so
// without it nobody would get an answer, while all that is counted looks well. What
// is written while nobody reads is lost beyond its room, and counted. Safe for
// concurrent use.
type relay struct {
	to    io.Writer
	own   *slog.Logger // writes to it directly
	queue chan []byte  // nil is the end
	over  chan struct{}
	lost  atomic.Int64
}

// newRelayedLogger returns a logger that holds nobody up, and its relay, which
// must be ended. From here on a reader who has gone does not end the process either.
func newRelayedLogger(to io.Writer, c configs.Log, level *slog.LevelVar) (*slog.Logger, *relay, error) {
	signal.Ignore(syscall.SIGPIPE)
	own, err := newLeveledLogger(to, c, level)
	if err != nil {
		return nil, nil, err
	}
	r := &relay{to: to, own: own, queue: make(chan []byte, relayRoom), over: make(chan struct{})}
	log, err := newLeveledLogger(r, c, level)
	if err != nil {
		return nil, nil, err
	}
	go r.run()
	return log, r, nil
}

func (r *relay) run() {
	defer close(r.over)
	told := int64(0)
	for line := range r.queue {
		if line == nil {
			return
		}
		if _, err := r.to.Write(line); err != nil {
			r.lost.Add(1)
			continue
		}
		if lost := r.lost.Load(); lost > told {
			r.own.WarnContext(context.Background(), "lines of the log were lost: nobody took them", "lines", lost-told)
			told = lost
		}
	}
}

// Write implements [io.Writer]. It never waits and never fails.
func (r *relay) Write(line []byte) (int, error) {
	select {
	case r.queue <- append([]byte{}, line...):
	default:
		r.lost.Add(1)
	}
	return len(line), nil
}

// end has what was written before it taken: for a second by whoever takes nothing,
// for five by whoever is slow.
func (r *relay) end() {
	queue, waiting, vain := r.queue, relayRoom+1, 0
	for range relayLooksEver {
		if n := len(r.queue); n < waiting {
			waiting, vain = n, 0
		} else if vain++; vain == relayLooks {
			return
		}
		select {
		case queue <- nil:
			queue = nil
		case <-r.over:
			return
		case <-time.After(relayLook):
		}
	}
}

// endWith tells the error that a command ends with, if any, and ends the log. The
// command has nothing to say then: whoever does not read would have it wait.
func (r *relay) endWith(err error) error {
	if err != nil {
		_, _ = fmt.Fprintf(r, "oncegate: %v\n", err)
		err = errSilent
	}
	r.end()
	return err
}

// registerLost publishes how many lines were lost.
func registerLost(r prometheus.Registerer, lost func() int64) error {
	err := r.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "oncegate_log_lines_lost_total", Help: "Lines of the log that nobody took.",
	}, func() float64 {
		if lost == nil {
			return 0
		}
		return float64(lost())
	}))
	if err != nil {
		return fmt.Errorf("register the lines lost: %w", err)
	}
	return nil
}
