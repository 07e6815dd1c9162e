package faultproxy_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
)

// rig is a database behind a proxy.
type rig struct {
	proxy  *faultproxy.MySQLProxy
	via    *sql.DB // through the proxy
	direct *sql.DB // past it
}

// onEngines runs a test against real servers, each with an empty table t(n).
func onEngines(t *testing.T, test func(*testing.T, rig)) {
	t.Helper()
	for name, server := range map[string]func(testing.TB) *testserver.SQLServer{
		"MySQL":   testserver.MySQL,
		"MariaDB": testserver.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			dsn := s.Database(t)
			proxy := faultproxy.NewMySQL(t, s.Addr)
			r := rig{proxy: proxy, via: open(t, dsn, proxy.Addr()), direct: open(t, dsn, s.Addr)}
			execute(t, r.direct, "CREATE TABLE t (n INT PRIMARY KEY)")
			test(t, r)
		})
	}
}

func TestMySQLProxyPassesAndCounts(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, r rig) {
		require.NoError(t, insert(t, r.via))
		require.NoError(t, r.via.PingContext(t.Context()))
		var n int
		require.NoError(t, r.via.QueryRowContext(t.Context(), "/* why */ SELECT n FROM t WHERE n = ?", 1).Scan(&n))

		require.Equal(t, []int{1}, rows(t, r.direct))
		require.Equal(t, 1, r.proxy.Seen("INSERT"))
		require.Equal(t, 1, r.proxy.Seen("COMMIT"))
		require.Equal(t, 1, r.proxy.Seen("COM_PING"))
		require.Equal(t, 1, r.proxy.Seen("COM_STMT_PREPARE"))
		require.Equal(t, 1, r.proxy.Counts()["START"])
	})
}

func TestMySQLProxyPassesStatementsOfSeveralParts(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, r rig) {
		execute(t, r.direct, "SET GLOBAL max_allowed_packet = 64*1024*1024") // for new connections
		// Longer than one packet may be.
		long := strings.Repeat("x", 17<<20)
		var length int
		require.NoError(t, r.via.QueryRowContext(t.Context(), "SELECT LENGTH('"+long+"')").Scan(&length))
		require.Equal(t, len(long), length)
	})
}

func TestCutBeforeCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, r rig) {
		onCommit(r.proxy, faultproxy.CutBefore)
		require.ErrorIs(t, insert(t, r.via), mysql.ErrInvalidConn)
		// The server rolls back when it sees the end of the connection.
		require.NoError(t, insert(t, r.direct))
		require.Equal(t, []int{1}, rows(t, r.direct))
	})
}

func TestSwallowedCommitIsCommitted(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, r rig) {
		onCommit(r.proxy, faultproxy.Swallow)
		require.ErrorIs(t, insert(t, r.via), mysql.ErrInvalidConn)
		// At once: the proxy has waited for the server's word.
		require.Equal(t, []int{1}, rows(t, r.direct))
	})
}

func TestSilentlySwallowedCommitLeavesTheClientWaiting(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, r rig) {
		onCommit(r.proxy, faultproxy.SwallowSilently)
		ended := make(chan error, 1)
		tx := begin(t, r.via)
		go func() { ended <- tx.Commit() }()
		require.Eventually(t, func() bool { return len(rows(t, r.direct)) == 1 }, patience, 10*time.Millisecond)
		require.Empty(t, ended, "the client was told")
		r.proxy.Cut()
		require.Error(t, within(t, ended))
	})
}

func TestLateCommitIsAppliedAfterItsClientHasGone(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, r rig) {
		release, committing := make(chan struct{}), make(chan struct{})
		r.proxy.OnQuery(func(query string) faultproxy.Action {
			if query != "COMMIT" {
				return nil
			}
			close(committing)
			return faultproxy.DelayForward{Until: release}
		})
		conn, err := r.via.Conn(t.Context())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }() // broken by then
		for _, statement := range []string{"START TRANSACTION", "INSERT INTO t VALUES (1)"} {
			_, err := conn.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := conn.ExecContext(ctx, "COMMIT")
			ended <- err
		}()
		within(t, committing)
		leave() // the driver closes the connection
		require.ErrorIs(t, within(t, ended), context.Canceled)
		require.Empty(t, rows(t, r.direct))

		close(release)
		require.Eventually(t, func() bool { return len(rows(t, r.direct)) == 1 }, patience, 10*time.Millisecond)
	})
}

func TestDelayedReplyComesAfterItsEffect(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, r rig) {
		release := make(chan struct{})
		onCommit(r.proxy, faultproxy.DelayReply{Until: release})
		ended := make(chan error, 1)
		tx := begin(t, r.via)
		go func() { ended <- tx.Commit() }()
		require.Eventually(t, func() bool { return len(rows(t, r.direct)) == 1 }, patience, 10*time.Millisecond)
		require.Empty(t, ended)
		close(release)
		require.NoError(t, within(t, ended))
	})
}

func TestErrorIsAnsweredInTheServersPlace(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, r rig) {
		refusal := faultproxy.AnswerError{Code: 1213, State: "40001", Message: "Deadlock found"}
		onCommit(r.proxy, refusal)
		err := insert(t, r.via)
		var answer *mysql.MySQLError
		require.ErrorAs(t, err, &answer)
		require.Equal(t, refusal.Code, answer.Number)
		require.Equal(t, refusal.State, string(answer.SQLState[:]))
		require.Equal(t, refusal.Message, answer.Message)
		require.Equal(t, 1, r.proxy.Seen("COMMIT"))
	})
}

// onCommit has the first COMMIT meet an action.
func onCommit(proxy *faultproxy.MySQLProxy, action faultproxy.Action) {
	first := make(chan struct{}, 1)
	first <- struct{}{}
	proxy.OnQuery(func(query string) faultproxy.Action {
		if query == "COMMIT" && len(first) == 1 {
			<-first
			return action
		}
		return faultproxy.Pass
	})
}

func open(t *testing.T, dsn, addr string) *sql.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	cfg.Addr = addr
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// insert adds a row in a transaction of its own.
func insert(t *testing.T, db *sql.DB) error {
	t.Helper()
	return begin(t, db).Commit()
}

// begin adds a row in a transaction that it leaves open.
func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
	require.NoError(t, err)
	return tx
}

func rows(t *testing.T, db *sql.DB) []int {
	t.Helper()
	result, err := db.QueryContext(t.Context(), "SELECT n FROM t")
	require.NoError(t, err)
	defer func() { require.NoError(t, result.Close()) }()
	var all []int
	for result.Next() {
		var n int
		require.NoError(t, result.Scan(&n))
		all = append(all, n)
	}
	require.NoError(t, result.Err())
	return all
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

func TestStatementsAreResent(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, r rig) {
		execute(t, r.direct, "INSERT INTO t VALUES (1), (11), (21)")
		resend := faultproxy.Resend{}
		r.proxy.OnQuery(func(string) faultproxy.Action { return resend })

		affected := func(statement string) int64 {
			result, err := r.via.ExecContext(t.Context(), statement)
			require.NoError(t, err)
			n, err := result.RowsAffected()
			require.NoError(t, err)
			return n
		}
		require.EqualValues(t, 3, affected("UPDATE t SET n = n + 1 ORDER BY n DESC"))
		require.Equal(t, []int{3, 13, 23}, rows(t, r.direct), "it was carried out twice")
		require.Equal(t, []int{3, 13, 23}, rows(t, r.via), "results are delivered once")
		require.EqualValues(t, 1, affected("INSERT INTO t VALUES (5)"), "the second try fails, and nobody hears of it")

		resend.Last = true
		require.EqualValues(t, 0, affected("DELETE FROM t WHERE n = 5"), "of the second try")
		_, err := r.via.ExecContext(t.Context(), "INSERT INTO t VALUES (6)")
		var answer *mysql.MySQLError
		require.ErrorAs(t, err, &answer)
		require.EqualValues(t, 1062, answer.Number)

		// All that a transaction had, behind its COMMIT.
		var seen []string
		r.proxy.OnQuery(func(query string) faultproxy.Action {
			seen = append(seen, query)
			if query == "COMMIT" {
				return faultproxy.Resend{Statements: seen}
			}
			return nil
		})
		tx, err := r.via.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		for _, statement := range []string{"UPDATE t SET n = n + 100 WHERE n = 6 OR n = 106", "SELECT n FROM t FOR UPDATE"} {
			_, err = tx.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		require.NoError(t, tx.Commit())
		require.Equal(t, []int{3, 13, 23, 206}, rows(t, r.direct))
		require.Equal(t, 1, r.proxy.Seen("COMMIT"), "what the client has sent")
	})
}
