//go:build unix

package testserver

import (
	"strconv"
	"testing"

	"github.com/oncegate/oncegate/internal/loopback"
)

// servers are the servers of this process. They are process-wide by nature:
// the tests of a binary share them, and TestMain ends them.
var servers = newFleet() //nolint:gochecknoglobals // the API that tests share has nowhere else to keep them

// MySQL returns a MySQL that the tests of this binary share.
func MySQL(tb testing.TB) *SQLServer {
	tb.Helper()
	s, err := servers.sharedMySQL()
	Demand(tb, err)
	return s
}

// MariaDB returns a MariaDB that the tests of this binary share.
func MariaDB(tb testing.TB) *SQLServer {
	tb.Helper()
	s, err := servers.sharedMariaDB()
	Demand(tb, err)
	return s
}

// Redis returns a Redis that the tests of this binary share.
func Redis(tb testing.TB) *RedisServer {
	tb.Helper()
	r, err := servers.sharedRedis()
	Demand(tb, err)
	return r
}

// StartMySQL starts a MySQL for one test, which may freeze, kill and restart it.
func StartMySQL(tb testing.TB) *SQLServer {
	tb.Helper()
	return startSQL(tb, mysqlEngine(), nil)
}

// StartMariaDB starts a MariaDB for one test, which may freeze, kill and
// restart it.
func StartMariaDB(tb testing.TB) *SQLServer {
	tb.Helper()
	return startSQL(tb, mariaDBEngine(), nil)
}

// StartMySQLNode starts a MySQL that is to replicate with others. The arguments
// are added to its command line: "--server-id=2".
func StartMySQLNode(tb testing.TB, args ...string) *SQLServer {
	tb.Helper()
	return startSQL(tb, mysqlEngine(), args)
}

// StartMariaDBNode starts a MariaDB that is to replicate with others, as
// [StartMySQLNode] does.
func StartMariaDBNode(tb testing.TB, args ...string) *SQLServer {
	tb.Helper()
	return startSQL(tb, mariaDBEngine(), args)
}

// StartRedis starts a Redis for one test, which may freeze, kill and restart
// it. The arguments are added to its command line: "--maxmemory", "1mb".
func StartRedis(tb testing.TB, args ...string) *RedisServer {
	tb.Helper()
	r, err := servers.startRedis(tb.Context(), args)
	Demand(tb, err)
	r.belongTo(tb)
	return r
}

// StartRedisNode starts a Redis that can be a node of a Cluster; it has no
// slots yet. Left to itself, Redis would listen for the other nodes at its port
// plus 10000, which may be anybody's.
func StartRedisNode(tb testing.TB, args ...string) *RedisServer {
	tb.Helper()
	bus, err := loopback.Reserve()
	if err != nil {
		tb.Fatalf("testserver: %v", err)
	}
	tb.Cleanup(func() {
		if err := bus.Release(); err != nil {
			tb.Errorf("testserver: %v", err)
		}
	})
	return StartRedis(tb, append([]string{"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus.Number())}, args...)...)
}

func startSQL(tb testing.TB, e engine, args []string) *SQLServer {
	tb.Helper()
	s, err := servers.startSQL(tb.Context(), e, args)
	Demand(tb, err)
	s.belongTo(tb)
	return s
}
