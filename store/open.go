package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/oncegate/oncegate/order"
)

// Store is the ledger and what is read and provisioned beside it. Safe for
// concurrent use.
type Store struct {
	o        Options
	d        *dialect
	hosts    *hosts // nil for SQLite
	version  string
	reads    *sql.DB // sessions with autocommit: look-ups and accounts
	writes   *sql.DB // sessions without: transactions
	places   *places // for transactions beside the ledger's, whose workers never wait for a session
	metrics  *metrics
	identity atomic.Uint64
	ledger   *ledger
	beat     *heartbeat
}

var (
	_ order.Ledger   = (*Store)(nil)
	_ order.Book     = (*Store)(nil)
	_ order.Accounts = (*Store)(nil)
)

// Open connects, checks the server and the schema, and starts the workers. It
// waits up to Options.StartTimeout for the server. It refuses a schema that is
// older than this program and a server setting that would break an invariant;
// one that weakens durability is logged and counted.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	s := &Store{o: o}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.closePools())
	}
	return s, nil
}

func (s *Store) start(ctx context.Context) error {
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	s.metrics = newMetrics(s.o.Registerer)
	s.metrics.capacity.Set(float64(s.o.Workers * s.o.Queue))
	s.o.Registerer.MustRegister(collectors.NewDBStatsCollector(s.reads, "reads"), collectors.NewDBStatsCollector(s.writes, "ledger"))
	if err := s.checkServer(ctx); err != nil {
		return err
	}
	s.beat = &heartbeat{s: s}
	if err := s.beat.once(ctx); err != nil {
		return err
	}
	s.ledger = newLedger(s)
	s.beat.start()
	return nil
}

// connect builds the pools for the engine that the DSN names.
func (s *Store) connect(ctx context.Context) error {
	o := &s.o
	if path, ok := strings.CutPrefix(o.DSN, sqliteScheme); ok {
		s.d = sqliteDialect()
		o.Workers = 1
		var err error
		if s.reads, err = sql.Open("sqlite", o.sqliteDSN(path)); err != nil {
			return fmt.Errorf("open %s: %w", path, err)
		}
		if s.writes, err = sql.Open("sqlite", o.sqliteDSN(path)); err != nil {
			return errors.Join(fmt.Errorf("open %s: %w", path, err), s.reads.Close())
		}
	} else {
		var err error
		if s.hosts, err = parseHosts(o.DSN); err != nil {
			return err
		}
		server, err := s.await(ctx)
		if err != nil {
			return err
		}
		s.d, s.version = mysqlDialect(server), server.version
		sessions := func(autocommit bool) (*sql.DB, error) {
			return s.hosts.open(func(c *mysql.Config) *mysql.Config { return o.session(c, server.mariadb, autocommit) })
		}
		if s.reads, err = sessions(true); err != nil {
			return err
		}
		if s.writes, err = sessions(false); err != nil {
			return errors.Join(err, s.reads.Close())
		}
	}
	limitPool(s.reads, o.ReadConns, o.WaitTimeout)
	s.places = newPlaces()
	limitPool(s.writes, o.Workers+besideLedger, o.WaitTimeout)
	return nil
}

// unlimited opens a pool for statements that may run for as long as a table is
// large: migrations and audits. Who asks for them ends them by their context.
func (s *Store) unlimited() (*sql.DB, error) {
	if path, ok := strings.CutPrefix(s.o.DSN, sqliteScheme); ok {
		db, err := sql.Open("sqlite", s.o.sqliteDSN(path))
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
		return db, nil
	}
	return s.hosts.open(func(c *mysql.Config) *mysql.Config {
		c = s.o.session(c, s.d.name == "mariadb", true)
		c.ReadTimeout, c.WriteTimeout = 0, 0
		return c
	})
}

// limitPool keeps idle connections well below the server's patience, so that
// its farewell (error 4031) never meets a command.
func limitPool(db *sql.DB, conns int, waitTimeout time.Duration) {
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxIdleTime(waitTimeout / 3)
	db.SetConnMaxLifetime(4 * time.Minute)
}

// await asks for the server until it answers or the start timeout is over: a
// gateway and its database often start together.
func (s *Store) await(ctx context.Context) (serverInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.StartTimeout)
	defer cancel()
	for warned := false; ; {
		server, err := probe(ctx, s.hosts, s.o.ConnectTimeout)
		if err == nil {
			return server, nil
		}
		if classifyMySQL(err) != faultUnavailable {
			return serverInfo{}, err // a wrong password does not mend itself
		}
		if !warned {
			s.o.Logger.WarnContext(ctx, "the database does not answer yet", "error", err)
			warned = true
		}
		if !pause(ctx, 250*time.Millisecond) {
			return serverInfo{}, fmt.Errorf("wait for the database: %w", err)
		}
	}
}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Engine names the engine and its version, for the log and the version metric.
func (s *Store) Engine() (name, version string) { return s.d.name, s.version }

// Close takes no more commands, decides those that wait, and closes the
// connections. When ctx ends first, what still waits is answered as not
// committed or unknown, whichever is true.
func (s *Store) Close(ctx context.Context) error {
	err := s.ledger.close(ctx)
	s.beat.stop()
	return errors.Join(err, s.closePools())
}

// closePools closes the sessions. A server that is gone takes no farewell, and
// nothing is lost by it.
func (s *Store) closePools() error {
	err := errors.Join(s.writes.Close(), s.reads.Close())
	if s.hosts != nil {
		return nil
	}
	return err
}
