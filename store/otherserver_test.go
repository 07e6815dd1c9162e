package store

import (
	"database/sql"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// A server is started again between two orders, and knows nothing of the sessions
// in the pool: nobody notices.
func TestSessionsOfAServerThatWasStartedAgainGoUnnoticed(t *testing.T) {
	t.Parallel()
	onOwnServers(t, func(t *testing.T, s ownServer) {
		h := openHarness(t, Options{DSN: s.dsn})
		account(t, h, "ann", 100_00)
		require.Equal(t, "created", kinds(submit(t, h, command(t, "ann", "before", potsticker(1_00)))()))
		s.Kill()
		s.Restart()
		require.Equal(t, "created", kinds(submit(t, h, command(t, "ann", "after", potsticker(1_00)))()))
		require.Equal(t, "replayed", kinds(submit(t, h, command(t, "ann", "before", potsticker(1_00)))()))
		_, err := h.Find(t.Context(), "ann", "before")
		require.NoError(t, err)
		requireSound(t, h)
	})
}

// ownServer is a server that a test may kill, with a migrated database.
type ownServer struct {
	*testserver.SQLServer
	dsn   string
	start func(testing.TB) *testserver.SQLServer
}

func onOwnServers(t *testing.T, test func(t *testing.T, s ownServer)) {
	t.Helper()
	for name, start := range map[string]func(testing.TB) *testserver.SQLServer{"MySQL": testserver.StartMySQL, "MariaDB": testserver.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ownServer{SQLServer: start(t), start: start}
			s.dsn = s.Database(t)
			require.NoError(t, Migrate(t.Context(), Options{DSN: s.dsn}))
			test(t, s)
		})
	}
}

// A COMMIT is not answered, and the next attempt meets another server, which has
// not what the first may have committed. It is not said of the first that it made
// nothing.
func TestNotCommittedIsNeverSaidOfAnotherServer(t *testing.T) {
	t.Parallel()
	onOwnServers(t, func(t *testing.T, first ownServer) {
		h, proxy := behindProxy(t, first.dsn, patient)
		second := first.another(t)
		account(t, h, "bob", 100_00)
		for user, fate := range map[string]faultproxy.Action{"ann": faultproxy.CutBefore, "bob": faultproxy.Swallow} {
			proxy.Redirect(first.Addr)
			proxy.Cut()
			proxy.OnQuery(func(q string) faultproxy.Action {
				if q != "COMMIT" {
					return faultproxy.Pass
				}
				proxy.Redirect(second) // where nobody has an account
				return fate
			})
			r := submit(t, h, command(t, user, "k", potsticker(1_00)))()[0]
			proxy.OnQuery(nil)
			require.ErrorIs(t, r.err, order.ErrUnknownUser, user)
			require.Equal(t, order.OutcomeUnknown, order.OutcomeOf(r.err), user)
		}
	})
}

// No COMMIT is answered by either of two servers, and the second can tell of its own
// only.
func TestNotCommittedIsNeverSaidOfTheFirstOfTwoServers(t *testing.T) {
	t.Parallel()
	onOwnServers(t, func(t *testing.T, first ownServer) {
		h, proxy := behindProxy(t, first.dsn, patient)
		second := first.another(t)
		c, err := mysql.ParseDSN(first.dsn)
		require.NoError(t, err)
		c.Addr = second
		onRawSession(t, c.FormatDSN(), func(db *sql.DB) {
			_, err := db.ExecContext(t.Context(), "INSERT INTO users VALUES ('ann', 100.00, 100.00, UTC_TIMESTAMP(3))")
			require.NoError(t, err)
		})
		var commits atomic.Int64
		proxy.OnQuery(func(q string) faultproxy.Action {
			switch {
			case q == commitText:
				proxy.Redirect(second)
				if commits.Add(1) == 1 {
					return faultproxy.Swallow // it is carried out
				}
				return faultproxy.CutBefore
			case commits.Load() > 1 && strings.HasPrefix(q, "INSERT INTO orders"):
				return faultproxy.AnswerError{Code: 1142, State: "42000", Message: "INSERT command denied"}
			}
			return faultproxy.Pass
		})
		r := submit(t, h, command(t, "ann", "k", potsticker(1_00)))()[0]
		proxy.OnQuery(nil)
		require.ErrorIs(t, r.err, order.ErrInternal)
		require.EqualValues(t, 2, commits.Load())
		require.Equal(t, order.OutcomeUnknown, order.OutcomeOf(r.err))
		proxy.Redirect(first.Addr)
		proxy.Cut()
		n, err := h.CountOrders(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, 1, n, "it was there all the time")
	})
}

// another starts a server of the same kind, whose database has the same name and
// nobody in it, and returns its address.
func (s *ownServer) another(t *testing.T) (addr string) {
	t.Helper()
	name, err := mysql.ParseDSN(s.dsn)
	require.NoError(t, err)
	other := s.start(t)
	c, err := mysql.ParseDSN(other.RootDSN)
	require.NoError(t, err)
	onRawSession(t, other.RootDSN, func(db *sql.DB) {
		_, err := db.ExecContext(t.Context(), "CREATE DATABASE `"+name.DBName+"`")
		require.NoError(t, err)
	})
	c.DBName = name.DBName
	require.NoError(t, Migrate(t.Context(), Options{DSN: c.FormatDSN()}))
	return other.Addr
}
