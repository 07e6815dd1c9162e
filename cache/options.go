package cache

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"
)

// Tuning is what may be changed while the filter runs.
type Tuning struct {
	// OpTimeout bounds one operation on Redis, whatever Redis does. Default
	// 50 ms. The client has time-outs of its own, made from the setting it was
	// opened with: a larger OpTimeout waits no longer than those.
	OpTimeout time.Duration
	// InProgressTTL is the life of a mark, ReceiptTTL of a receipt. Defaults
	// 10 s and 24 h, at least 1 s: a TTL of zero would mean for ever.
	InProgressTTL, ReceiptTTL time.Duration
	// LocalTTL is how long this process remembers a receipt, those that it has
	// remembered already too. Default 60 s; zero: not at all.
	LocalTTL time.Duration
	// BreakerFailures in a row open the breaker (default 5); it stays open for
	// BreakerOpenFor (default 2 s) before one request tries Redis again. A change
	// of the latter closes it.
	BreakerFailures int
	BreakerOpenFor  time.Duration
}

// DefaultTuning returns the defaults.
func DefaultTuning() Tuning {
	return Tuning{
		OpTimeout:     50 * time.Millisecond,
		InProgressTTL: 10 * time.Second, ReceiptTTL: 24 * time.Hour, LocalTTL: time.Minute,
		BreakerFailures: 5, BreakerOpenFor: 2 * time.Second,
	}
}

// validate refuses what would make a mark or a receipt immortal, and a breaker
// that never lets anything through or never opens.
func (t Tuning) validate() error {
	switch {
	case t.OpTimeout <= 0:
		return errors.New("cache: the operation time-out must be above zero")
	case t.InProgressTTL < time.Second || t.ReceiptTTL < time.Second:
		return fmt.Errorf("cache: a TTL must be at least 1s (in progress %v, receipt %v)", t.InProgressTTL, t.ReceiptTTL)
	case t.LocalTTL < 0:
		return errors.New("cache: the local TTL must not be negative")
	case t.BreakerFailures < 1 || t.BreakerOpenFor <= 0:
		return errors.New("cache: the breaker's settings must be above zero")
	}
	return nil
}

// Options are what a [Filter] is made of.
type Options struct {
	// Client is the Redis to use, as [OpenClient] or [OpenEmbedded] return it.
	// It must outlive the filter's last call; closing it ends all that the
	// filter has running. Required.
	Client redis.UniversalClient
	// Pipelining lets concurrent commands share round trips, in order, one exchange
	// at a time per node: many take a fraction of the time. A lone one goes by
	// itself, as all do without it.
	Pipelining bool
	// MACKey proves that an entry was written by a gateway; at least 16 bytes,
	// the same on every gateway. Required.
	MACKey []byte
	// Prefix begins every Redis key. Default "oncegate".
	Prefix string
	// MaxBody is the largest answer, in bytes, that is kept in Redis; a larger
	// one is pointed to, and read from the database. Default 16 KiB, at most 1 MiB.
	MaxBody int
	// DisableProcessTier leaves only the Redis guard.
	DisableProcessTier bool
	// LocalEntries and LocalBytes bound the receipts that this process
	// remembers. Defaults 50 000 and 64 MiB.
	LocalEntries, LocalBytes int
	// BreakerMoved is told of every move of the breaker, and why Redis is left
	// alone. It is called under the breaker's lock and must not wait. Default: nobody.
	BreakerMoved func(from, to, reason string)

	// Tracer makes spans of what is asked of the filter. Default: none, and it
	// costs nothing.
	Tracer trace.Tracer

	Tuning     func() Tuning         // the settings in force, validated; default: [DefaultTuning]
	Now        func() time.Time      // default time.Now
	Logger     *slog.Logger          // default: none
	Registerer prometheus.Registerer // default: a registry of its own
}

func (o *Options) setDefaults() error {
	setDefault(&o.Prefix, "oncegate")
	setDefault(&o.MaxBody, 16<<10)
	setDefault(&o.LocalEntries, 50_000)
	setDefault(&o.LocalBytes, 64<<20)
	if o.Tuning == nil {
		o.Tuning = DefaultTuning
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	return o.validate()
}

func (o *Options) validate() error {
	switch {
	case o.Client == nil:
		return errors.New("cache: a Redis client is required")
	case len(o.MACKey) < 16:
		return errors.New("cache: the MAC key must have at least 16 bytes")
	case o.MaxBody < 0 || o.MaxBody > maxBody:
		return fmt.Errorf("cache: the largest answer kept in Redis must have from 0 to %d bytes", maxBody)
	case o.LocalEntries < 0 || o.LocalBytes < 0:
		return errors.New("cache: the bounds of the process tier must not be negative")
	}
	return o.Tuning().validate()
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
