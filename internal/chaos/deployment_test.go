//go:build linux

package chaos

import (
	"context"
	"database/sql"
	"net/http"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/loadtest/identity"
)

// engines are the databases that every promise is tested on.
func engines() map[string]func(testing.TB) *testserver.SQLServer {
	return map[string]func(testing.TB) *testserver.SQLServer{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB}
}

// flawVariable switches on one mistake of a program that was built to make it.
const flawVariable = "ONCEGATE_TEST_FLAW"

// settings are those of a gateway of a deployment. The grace is short, so that a
// retry after a crash need not wait for long.
func settings(dsn, redis string) map[string]string {
	return map[string]string{
		"ONCEGATE_MYSQL__DSN":               dsn,
		"ONCEGATE_REDIS__ADDRS":             redis,
		"ONCEGATE_REDIS__OP_TIMEOUT":        "500ms", // the machine is busy
		"ONCEGATE_CACHE__MAC_KEY":           macKey,
		"ONCEGATE_AUTH__HS256_SECRET":       tokenSecret,
		"ONCEGATE_IN_PROGRESS_GRACE":        "200ms",
		"ONCEGATE_USERS__PROVISION_BALANCE": "none",
		"ONCEGATE_LOG__LEVEL":               "warn",
		flawVariable:                        *flawed,
	}
}

// migrate brings the schema up to date, with the program itself.
func migrate(t *testing.T, program, dsn string) {
	t.Helper()
	g := newGateway(t, program, settings(dsn, "127.0.0.1:1"))
	_, code := g.command("migrate", "up")
	require.Zero(t, code, "migrate up")
}

// couldNotLook is the exit code of an audit without a verdict.
const couldNotLook = 2

// audited has the program prove that the database is consistent. A reply of the
// database may take longer than the program waits.
func audited(t *testing.T, g *gateway) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	report, code := "", couldNotLook
	for tick := every(ctx, 100*time.Millisecond); code == couldNotLook && tick(); {
		report, code = g.command("audit")
	}
	require.Zero(t, code, report)
	t.Logf("audit: %s", strings.TrimSpace(report))
}

// token signs a token for a user, good for longer than any clock is moved.
func token(t *testing.T, user string) string {
	t.Helper()
	return tokenFor(t, user, 7*24*time.Hour)
}

func tokenFor(t *testing.T, user string, lifetime time.Duration) string {
	t.Helper()
	issuer := identity.Issuer{Audience: "oncegate", Issuer: "oncegate", Lifetime: lifetime}
	require.NoError(t, issuer.UseSecret([]byte(tokenSecret)))
	signed, err := issuer.Token(user, "orders", time.Now())
	require.NoError(t, err)
	return signed
}

// opened opens the database itself, to look behind the gateways.
func opened(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// number reads one number.
func number(t *testing.T, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(context.Background(), query, args...).Scan(&n))
	return n
}

// provide writes to the admin listener, until it is written: a busy machine may
// take longer than one request may.
func (g *gateway) provide(path, body string) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	var a answer
	var err error
	for tick := every(ctx, 50*time.Millisecond); tick(); {
		if a, err = ask(http.MethodPut, "http://"+g.admin+path, "", "", body); err == nil && a.final() {
			require.Equal(g.t, http.StatusOK, a.status, a.body)
			return
		}
	}
	g.t.Fatalf("%s is not written in %v: %d %s %v", path, readyTime, a.status, a.body, err)
}
