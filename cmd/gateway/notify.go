package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/oncegate/oncegate/configs"
)

// What the service manager is told (sd_notify(3)).
const (
	stateReady    = "READY=1\n" + stateTaking
	stateStopping = "STOPPING=1\nSTATUS=answering what is under way"
	stateAlive    = "WATCHDOG=1"
	// stateRefused ends a reload that changed nothing: there is no word for one
	// that failed, and the gateway is as ready as before.
	stateRefused = "READY=1\n" + stateKept

	stateTaking = "STATUS=taking orders"
	stateKept   = stateTaking + "; the configuration was read again and refused, the one before stays: see the log"
)

// stateReloading begins a reload. The time tells the manager that it is the one
// that it has asked for.
func stateReloading(monotonic time.Duration) string {
	return "RELOADING=1\nMONOTONIC_USEC=" + strconv.FormatInt(monotonic.Microseconds(), 10) + "\nSTATUS=taking orders, reading the configuration again"
}

// supervisor is the service manager that started this process, such as systemd.
// Its zero value is nobody, and may be told anything.
type supervisor struct {
	socket   string
	watchdog time.Duration // after how long without a sign of life it ends the process; 0: never
}

// supervisorOf reads who started the process from its environment.
func supervisorOf(env environment) supervisor {
	s := supervisor{socket: env.lookup("NOTIFY_SOCKET")}
	micros, err := strconv.ParseInt(env.lookup("WATCHDOG_USEC"), 10, 64)
	if err == nil && micros > 0 {
		s.watchdog = time.Duration(micros) * time.Microsecond
	}
	return s
}

// tell sends one message.
func (s supervisor) tell(ctx context.Context, state string) error {
	if s.socket == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unixgram", s.socket)
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	defer func() { _ = conn.Close() }()
	// The manager may be too busy to take it: then its socket is full.
	deadline, _ := ctx.Deadline()
	if err := conn.SetWriteDeadline(deadline); err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	return nil
}

// reloading tells the manager that the configuration is being read again, and by
// what it returns, that it was.
func (s supervisor) reloading(log *slog.Logger) func(context.Context) func(string) {
	return func(ctx context.Context) func(string) {
		s.report(ctx, log, stateReloading(monotonic()))
		return func(refusal string) {
			if refusal != "" {
				s.report(ctx, log, stateRefused)
				return
			}
			s.report(ctx, log, stateReady)
		}
	}
}

// judged tells the manager of a reading that nobody asked for.
func (s supervisor) judged(log *slog.Logger) func(context.Context, string) {
	return func(ctx context.Context, refusal string) {
		state := stateTaking
		if refusal != "" {
			state = stateKept
		}
		s.report(ctx, log, state)
	}
}

// supervised runs an App under a service manager: ready before it serves, for
// its listeners are open; alive as long as its own listener answers; stopping
// when ctx ends.
func (a *App) supervised(ctx context.Context, s supervisor, cfg *configs.Config) error {
	s.report(ctx, a.log, stateReady)
	var told sync.WaitGroup
	running, ended := context.WithCancel(context.WithoutCancel(ctx))
	if s.watchdog > 0 {
		told.Go(func() {
			s.signsOfLife(running, a.log, func(ctx context.Context) error {
				return probeHealth(ctx, io.Discard, cfg, a.Addr(), "/livez")
			})
		})
	}
	told.Go(func() {
		select {
		case <-ctx.Done():
			s.report(running, a.log, stateStopping)
		case <-running.Done():
		}
	})
	err := a.Run(ctx)
	ended()
	told.Wait()
	return err
}

// report is tell for those who can do nothing about a manager that is not there.
func (s supervisor) report(ctx context.Context, log *slog.Logger, state string) {
	if err := s.tell(ctx, state); err != nil {
		log.WarnContext(ctx, "the service manager was not told", "error", err)
	}
}

// signsOfLife tells the service manager, twice in its patience, that alive says
// so, and tries again sooner when it does not: what fails once may be over before
// the patience is. It returns when ctx ends.
func (s supervisor) signsOfLife(ctx context.Context, log *slog.Logger, alive func(context.Context) error) {
	ticker := time.NewTicker(s.watchdog / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			ticker.Reset(s.watchdog / 2) // however long the look takes
			err := alive(ctx)
			if err == nil {
				err = s.tell(ctx, stateAlive)
			}
			if err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "no sign of life for the service manager", "error", err)
				ticker.Reset(max(s.watchdog/20, 1))
			}
		}
	}
}
