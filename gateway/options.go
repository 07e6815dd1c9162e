package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/oncegate/oncegate/insight"
	"github.com/oncegate/oncegate/order"
)

// Submitter decides commands. [*order.Intake] is one.
type Submitter interface {
	Submit(ctx context.Context, c *order.Command, wait time.Duration) (order.Answer, error)
	// Defer accepts a command that is carried out later.
	Defer(ctx context.Context, c *order.Command) (order.Answer, error)
	Status(ctx context.Context, userID string, key order.Key) (order.RequestStatus, error)
}

// Authenticator tells who presents a bearer token. An error that wraps
// [ErrTokenInvalid] is the caller's fault; any other is ours.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (Identity, error)
}

// Tuning is what may be changed while the gateway runs.
type Tuning struct {
	// KeyRequired refuses orders without an Idempotency-Key. Default true.
	KeyRequired bool
	// ReusedStatus answers a key that belongs to another content: 409 (default)
	// or 422, as the IETF draft has it.
	ReusedStatus int
	// MaxOrderBody and MaxBatchBody bound request bodies, in bytes. Default
	// 64 KiB and 512 KiB.
	MaxOrderBody, MaxBatchBody int
	// MaxRows bounds a batch. Default [order.MaxLines], which is also its limit.
	MaxRows int
	// MaxInFlight bounds the API requests that run at once. Default 10 000;
	// zero: no bound.
	MaxInFlight int
	// RatePerSecond is how many new orders a user may make per second on
	// average, RateBurst how many at once. Default 0: no limit.
	RatePerSecond, RateBurst float64
	// MaxWait caps Prefer: wait=n. Default 10 s.
	MaxWait time.Duration
	// ChangeBudget bounds a change of an order's state. Default 6 s.
	ChangeBudget time.Duration
	// ReadBudget bounds a read of orders. Default 3 s.
	ReadBudget time.Duration
	// FastWindow and ResponseRetention are published by the policy: how long a
	// replay is cheap, and how long it has the first bytes. Default 24 h, 30 d.
	FastWindow, ResponseRetention time.Duration
}

// DefaultTuning returns the defaults.
func DefaultTuning() Tuning {
	return Tuning{
		KeyRequired:       true,
		ReusedStatus:      http.StatusConflict,
		MaxOrderBody:      64 << 10,
		MaxBatchBody:      512 << 10,
		MaxRows:           order.MaxLines,
		MaxInFlight:       10_000,
		MaxWait:           10 * time.Second,
		ChangeBudget:      6 * time.Second,
		ReadBudget:        3 * time.Second,
		FastWindow:        24 * time.Hour,
		ResponseRetention: 30 * 24 * time.Hour,
	}
}

// Timeouts bound one connection of a listener.
type Timeouts struct {
	ReadHeader time.Duration // default 5 s
	Read       time.Duration // whole request; default 15 s
	Write      time.Duration // from the end of the header to the end of the answer; default 30 s
	Idle       time.Duration // between requests; default 60 s
}

func (t Timeouts) withDefaults() Timeouts {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&t.ReadHeader, 5*time.Second)
	def(&t.Read, 15*time.Second)
	def(&t.Write, 30*time.Second)
	def(&t.Idle, time.Minute)
	return t
}

// Options are what a [Server] is made of. All are required but those that name
// a default.
type Options struct {
	// Addr is what to listen on, such as "127.0.0.1:8080".
	Addr      string
	Submitter Submitter
	Book      order.Book
	Lifecycle order.Lifecycle
	// Webhooks verifies payment callbacks. Default: none, and the route is not there.
	Webhooks *Webhooks
	Auth     Authenticator
	Renderer *Renderer
	// ForgetRejections is what the ledger does with refusals, for clients to know.
	ForgetRejections bool

	Metrics  *Metrics
	Health   *Health
	Logger   *slog.Logger
	Now      func() time.Time
	Tuning   func() Tuning // the settings in force; called once per request
	Timeouts Timeouts      // default as its members say
	// Certificates are shown to whoever connects. Default: none, plain HTTP.
	Certificates *Certificates
	// Demo is a page to try the gateway with, at /demo. Default: none.
	Demo *Demo
	// Spec is the OpenAPI document to serve.
	Spec []byte
	// DrainDelay is how long the gateway still takes requests after /readyz went
	// false, so that load balancers see it. Default 0.
	DrainDelay time.Duration
	// RateUsers bounds how many users' rates are remembered. Default 100 000.
	RateUsers int
	// Tracer makes a span of every request but probes, and continues the trace
	// that a caller's traceparent names. Default: none, and it costs nothing.
	Tracer trace.Tracer
	// Conflicts is told of requests that a client should not have sent; it must
	// not wait. Default: nobody.
	Conflicts func(insight.Conflict)
	// LogHashKey keys the hash that stands for an idempotency key in the logs;
	// gateways that share it write the same hash. Default: random.
	LogHashKey []byte
}

func (o *Options) check() error {
	switch {
	case o.Submitter == nil, o.Book == nil, o.Lifecycle == nil, o.Auth == nil, o.Renderer == nil, o.Metrics == nil,
		o.Health == nil, o.Logger == nil, o.Now == nil, o.Tuning == nil, len(o.Spec) == 0:
		return errors.New("gateway: an option is missing")
	default:
		return nil
	}
}
