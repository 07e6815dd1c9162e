//go:build unix

package bench

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"github.com/oncegate/oncegate/loadtest/drive"
)

// stage is what all sides play on.
type stage struct {
	c      *Config
	admin  *sql.DB
	redis  *redis.Client
	users  []drive.Identity
	secret string
	macKey string
	made   int // databases so far
}

// target is a side that is up.
type target struct {
	worker func(ctx context.Context, i int) (worker, error)
	layers func(ctx context.Context) (Layers, error) // nil: a baseline has none
	stop   func() error
	admin  string // address of the gateway's admin listener; a baseline has none
	note   string // for whoever reads the table
}

// side is one of the two that a path compares.
type side struct {
	name string
	open func(ctx context.Context, s *stage) (*target, error)
}

func newStage(c *Config) (*stage, error) {
	s := &stage{c: c, secret: rand.Text() + rand.Text(), macKey: rand.Text()}
	var err error
	if s.users, err = signUsers(s.secret, fewUsers, time.Now()); err != nil {
		return nil, err
	}
	connector, err := s.connector("", nil)
	if err != nil {
		return nil, err
	}
	s.admin = sql.OpenDB(connector)
	s.redis = redis.NewClient(&redis.Options{Addr: c.Redis})
	return s, nil
}

func (s *stage) close() error { return errors.Join(s.admin.Close(), s.redis.Close()) }

// dsn names a database of the private server.
func (s *stage) dsn(database string) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(s.c.MySQL)
	if err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}
	cfg.DBName = database
	return cfg, nil
}

func (s *stage) connector(database string, change func(*mysql.Config)) (driver.Connector, error) {
	cfg, err := s.dsn(database)
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(cfg)
	}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}
	return c, nil
}

// database makes a database with the schema of a gateway and accounts for the
// users, and says how to drop it. Each side has its own, so that none finds the
// rows of another.
func (s *stage) database(ctx context.Context, binary string, users []drive.Identity) (name string, drop func() error, err error) {
	s.made++
	name = fmt.Sprintf("bench_%d", s.made)
	if _, err := s.admin.ExecContext(ctx, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4"); err != nil {
		return "", nil, fmt.Errorf("make a database: %w", err)
	}
	drop = func() error {
		// The run may be over, and the connection of a server that is stopping.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if _, err := s.admin.ExecContext(ctx, "DROP DATABASE "+name); err != nil {
			return fmt.Errorf("drop a database: %w", err)
		}
		return nil
	}
	if err := s.furnish(ctx, binary, name, users); err != nil {
		return "", nil, errors.Join(err, drop())
	}
	return name, drop, nil
}

func (s *stage) furnish(ctx context.Context, binary, name string, users []drive.Identity) error {
	if err := s.migrate(ctx, binary, name); err != nil {
		return err
	}
	connector, err := s.connector(name, nil)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	return errors.Join(insertUsers(ctx, db, users), db.Close())
}

func (s *stage) say(format string, args ...any) {
	fmt.Fprintln(s.c.Progress, strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
}
