package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Check asks one dependency. Func returns when its context ends.
type Check struct {
	Name string
	// Critical: without it the gateway cannot give right answers. The others
	// only make it slower.
	Critical bool
	Func     func(ctx context.Context) error
}

// HealthOptions are what a [Health] is made of. All are required but those that
// name a default.
type HealthOptions struct {
	Checks []Check
	Now    func() time.Time
	Logger *slog.Logger
	// Timeout bounds a round of checks. Default 1 s.
	Timeout time.Duration
	// TTL is how long a round is believed, so that probes cannot hammer the
	// dependencies. Default 1 s.
	TTL time.Duration
}

// Health tells whether the gateway can take orders. Safe for concurrent use.
type Health struct {
	o        HealthOptions
	draining atomic.Bool

	mu   sync.Mutex
	at   time.Time
	errs []error // of the last round, by check; nil before the first
}

// NewHealth makes a health that runs the checks when it is asked.
func NewHealth(o HealthOptions) *Health {
	if o.Timeout == 0 {
		o.Timeout = time.Second
	}
	if o.TTL == 0 {
		o.TTL = time.Second
	}
	return &Health{o: o}
}

// Drain makes the gateway not ready, for good.
func (h *Health) Drain() { h.draining.Store(true) }

// The states of health.
const (
	healthOK          = "ok"
	healthDegraded    = "degraded"
	healthUnavailable = "unavailable"
	healthDraining    = "draining"
	healthFailing     = "failing" // of one check
)

// ready returns the status and the document for a probe.
func (h *Health) ready(ctx context.Context) (status int, body []byte) {
	if h.draining.Load() {
		return http.StatusServiceUnavailable, healthBody(healthDraining, nil, nil)
	}
	errs := h.round(ctx)
	status, state := http.StatusOK, healthOK
	for i, c := range h.o.Checks {
		switch {
		case errs[i] == nil:
		case c.Critical:
			status, state = http.StatusServiceUnavailable, healthUnavailable
		case state == healthOK:
			state = healthDegraded
		}
	}
	return status, healthBody(state, h.o.Checks, errs)
}

// round returns the results of the last round, or of a new one when they are
// too old. Whoever comes while one is under way waits for it.
func (h *Health) round(ctx context.Context) []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.errs != nil && h.o.Now().Sub(h.at) < h.o.TTL {
		return h.errs
	}
	// The result is for everybody, so this caller's cancel must not colour it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.o.Timeout)
	defer cancel()
	errs := make([]error, len(h.o.Checks))
	var wg sync.WaitGroup
	for i, c := range h.o.Checks {
		wg.Go(func() { errs[i] = c.Func(ctx) })
	}
	wg.Wait()
	h.logChanges(errs)
	h.errs, h.at = errs, h.o.Now()
	return errs
}

func (h *Health) logChanges(errs []error) {
	for i, c := range h.o.Checks {
		was := h.errs != nil && h.errs[i] != nil
		switch {
		case errs[i] != nil && !was:
			h.o.Logger.Warn("health check fails", "check", c.Name, "critical", c.Critical, "error", errs[i])
		case errs[i] == nil && was:
			h.o.Logger.Info("health check passes again", "check", c.Name)
		}
	}
}

// healthBody names the checks that fail, never why: the reason may hold
// addresses, and anybody may ask.
func healthBody(state string, checks []Check, errs []error) []byte {
	b := appendText([]byte{'{'}, "status", state)
	if len(checks) > 0 {
		b = append(appendMember(b, "checks"), '{')
		for i, c := range checks {
			result := healthOK
			if errs[i] != nil {
				result = healthFailing
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(append(appendString(b, c.Name), ':'), result)
		}
		b = append(b, '}')
	}
	return append(b, '}')
}
