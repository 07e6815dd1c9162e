//go:build linux && ha

package hatest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// member is one of several database servers.
type member struct {
	*testserver.SQLServer
	t  *testing.T
	db *sql.DB // of an administrator
}

func newMember(t *testing.T, server *testserver.SQLServer) *member {
	t.Helper()
	config, err := mysql.ParseDSN(server.RootDSN)
	require.NoError(t, err)
	config.Timeout, config.ReadTimeout = 5*time.Second, patient
	config.Logger = &mysql.NopLogger{} // a server that was killed is no news
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	m := &member{SQLServer: server, t: t, db: sql.OpenDB(connector)}
	t.Cleanup(func() { require.NoError(t, m.db.Close()) })
	return m
}

// exec runs statements of an administrator, one by one.
func (m *member) exec(statements ...string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	for _, statement := range statements {
		_, err := m.db.ExecContext(ctx, statement)
		require.NoError(m.t, err, statement)
	}
}

// text reads one value.
func (m *member) text(ctx context.Context, query string) (value string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = m.db.QueryRowContext(ctx, query).Scan(&value)
	return value, err
}

// awaitText waits until a value is as wanted.
func (m *member) awaitText(query, want string) {
	m.t.Helper()
	await(m.t, query, func(ctx context.Context) error {
		value, err := m.text(ctx, query)
		if err == nil && value != want {
			err = errors.New("it is " + value)
		}
		return err
	})
}

// shop names the database and the gateway's account, for whom a read-only
// server is read-only.
const shop = "shop"

// createShop makes them on the primary, from where they are replicated.
func (m *member) createShop() {
	m.t.Helper()
	m.exec("CREATE DATABASE shop CHARACTER SET utf8mb4", "CREATE USER 'shop'@'%'", "GRANT ALL ON shop.* TO 'shop'@'%'")
	if !strings.Contains(m.Version, "MariaDB") {
		m.exec("GRANT SELECT ON performance_schema.replication_group_members TO 'shop'@'%'")
	}
}

// shopDSN is the gateway's DSN of these servers.
func shopDSN(members ...*member) string {
	addrs := make([]string, len(members))
	for i, m := range members {
		addrs[i] = m.Addr
	}
	return fmt.Sprintf("%s@tcp(%s)/%s", shop, strings.Join(addrs, ","), shop)
}
