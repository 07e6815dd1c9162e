//go:build unix

package testserver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// SQLServer is a running MySQL or MariaDB.
type SQLServer struct {
	server
	// RootDSN connects as an administrator, to no database.
	RootDSN string
}

// Database makes an empty database with a random name and returns a
// go-sql-driver DSN for it. It is dropped at the end of the test.
func (s *SQLServer) Database(tb testing.TB) string {
	tb.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:16])
	if err := s.exec(tb.Context(), "CREATE DATABASE "+name+" CHARACTER SET utf8mb4"); err != nil {
		tb.Fatalf("testserver: %v", err)
	}
	if s.owner == nil { // a private server goes whole, and may be frozen or dead by then
		tb.Cleanup(func() { s.drop(tb, name) })
	}
	cfg, err := mysql.ParseDSN(s.RootDSN)
	if err != nil {
		tb.Fatalf("testserver: DSN: %v", err)
	}
	cfg.DBName = name
	return cfg.FormatDSN()
}

func (s *SQLServer) drop(tb testing.TB, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), operationTimeout)
	defer cancel()
	if err := s.exec(ctx, "DROP DATABASE IF EXISTS "+name); err != nil {
		tb.Errorf("testserver: a session of the test may still be open: %v", err)
	}
}

// exec runs one administrative statement on a connection of its own.
func (s *SQLServer) exec(ctx context.Context, statement string) error {
	db, err := openSQL(s.RootDSN)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // the statement has its own error
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// openSQL opens a database without the driver's own log: a server that is
// starting refuses connections, and that is no news.
func openSQL(dsn string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}
	return sql.OpenDB(connector), nil
}

// newSQLServer describes a server that is reached by the DSN.
func newSQLServer(dsn string) (*SQLServer, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("DSN: %w", err)
	}
	s := &SQLServer{server: server{Addr: cfg.Addr}}
	s.ping = s.askVersion
	cfg.DBName = ""
	s.RootDSN = cfg.FormatDSN()
	return s, nil
}

// askVersion doubles as the ping: a server that tells its version is ready.
func (s *SQLServer) askVersion(ctx context.Context) error {
	db, err := openSQL(s.RootDSN)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // only read
	var answer string
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&answer); err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	s.Version = answer
	return nil
}

// loopbackDSN is the administrator's DSN of a server that this package starts.
func loopbackDSN(addr string) string {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.Timeout = "root", "tcp", addr, 10*time.Second
	return cfg.FormatDSN()
}
