package store

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncegate/oncegate/order"
)

// Options are what a [Store] is made of.
type Options struct {
	// DSN is a go-sql-driver/mysql DSN, or "sqlite:" and a path. Required. The
	// address may list several hosts, tcp(db1:3306,db2:3306), of whom the one
	// whose read_only is off is used. That at most one is, is up to whoever
	// promotes them.
	DSN string
	// Renderer makes the bytes that are stored and answered. Required.
	Renderer order.Renderer

	// Workers decide groups of commands side by side; a user always goes to the
	// same one. Default 2; SQLite, with its single writer, gets 1.
	Workers int
	// MaxBatch bounds the commands of one transaction. Default 128; 1 gives a
	// transaction per command.
	MaxBatch int
	// MaxRows bounds the order lines of one transaction. Default 512; a single
	// larger command gets a transaction of its own.
	MaxRows int
	// Queue bounds the commands waiting for one worker. Default 1024; beyond it, or
	// when a command would wait for half of its time, [order.ErrOverloaded].
	Queue int

	// ForgetRejections releases the key of a business refusal instead of
	// recording the refusal.
	ForgetRejections bool
	// ProvisionBalance, when set, opens an account with this balance for a user
	// who has none.
	ProvisionBalance *order.Amount

	// The time limits, ascending. LockWaitTimeout (default 1 s, whole seconds)
	// bounds a wait for a row; ReadTimeout (default 3 s) any reply of the
	// server, COMMIT's too; WaitTimeout (default 20 s, whole seconds) is when
	// the server ends a session of a frozen gateway. ConnectTimeout (default
	// 2 s) bounds a connection attempt, StartTimeout (default 30 s) how long
	// Open waits for a server that is not there yet.
	LockWaitTimeout, ReadTimeout, WaitTimeout, ConnectTimeout, StartTimeout time.Duration

	// ReadConns bounds the connections for reads. Default 16.
	ReadConns int

	// Tracer makes spans of decisions and transactions, in which no key and no
	// SQL appears. Default: none, and it costs nothing.
	Tracer trace.Tracer

	Now        func() time.Time      // default time.Now
	Logger     *slog.Logger          // default: none
	Registerer prometheus.Registerer // default: a registry of its own
}

func (o *Options) setDefaults() error {
	if o.Renderer == nil {
		return errors.New("store: a renderer is required")
	}
	if err := o.setTimes(); err != nil {
		return err
	}
	setDefault(&o.Workers, 2)
	setDefault(&o.MaxBatch, 128)
	setDefault(&o.MaxRows, 512)
	setDefault(&o.Queue, 1024)
	if o.Workers < 1 || o.MaxBatch < 1 || o.MaxRows < 1 || o.Queue < 1 || o.ReadConns < 1 {
		return errors.New("store: workers, max batch, max rows, queue and read connections must be at least 1")
	}
	return nil
}

// setTimes sets what every connection needs, migrations' too.
func (o *Options) setTimes() error {
	if o.DSN == "" {
		return errors.New("store: a DSN is required")
	}
	setDefault(&o.LockWaitTimeout, time.Second)
	setDefault(&o.ReadTimeout, 3*time.Second)
	setDefault(&o.WaitTimeout, 20*time.Second)
	setDefault(&o.ConnectTimeout, 2*time.Second)
	setDefault(&o.StartTimeout, 30*time.Second)
	setDefault(&o.ReadConns, 16)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	if o.LockWaitTimeout >= o.ReadTimeout || o.ReadTimeout >= o.WaitTimeout {
		return fmt.Errorf("store: lock wait timeout (%v), read timeout (%v) and wait timeout (%v) must ascend",
			o.LockWaitTimeout, o.ReadTimeout, o.WaitTimeout)
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
