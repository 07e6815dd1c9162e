package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

func TestDSNMayListHosts(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string][]string{
		"u:p@tcp(a:1)/d":                        {"a:1"},
		"u:p@tcp(a:1,b:2)/d":                    {"a:1", "b:2"},
		"u:p@tcp(a, b:2 ,c)/d?timeout=1s":       {"a:3306", "b:2", "c:3306"},
		"u:p@tcp([::1]:1,[::2]:2)/d":            {"[::1]:1", "[::2]:2"},
		"u:p@x,(/),y@tcp(a:1,b:2)/d":            {"a:1", "b:2"},
		"u:(p,q)@/d":                            {"127.0.0.1:3306"},
		"u@unix(/run/mysqld.sock)/d":            {"/run/mysqld.sock"},
		"tcp(a:1,b:2)/d":                        {"a:1", "b:2"},
		"u@tcp(a:1,b:2)/d?loc=Europe%2FBerlin":  {"a:1", "b:2"},
		"u@tcp/d":                               {"127.0.0.1:3306"},
		"/d":                                    {"127.0.0.1:3306"},
		"u:p@tcp(a:1,a:2,a:3)/d?parseTime=true": {"a:1", "a:2", "a:3"},
	} {
		h, err := parseHosts(dsn)
		require.NoError(t, err, dsn)
		var got []string
		for _, c := range h.each {
			got = append(got, c.Addr)
			require.Equal(t, "d", c.DBName, dsn)
			require.Equal(t, h.each[0].User, c.User, dsn)
			require.Equal(t, h.each[0].Passwd, c.Passwd, dsn)
		}
		require.Equal(t, want, got, dsn)
	}
	for _, dsn := range []string{"u@tcp(a:1,b:2)", "u@tcp(a:1,b:2/d", "u@tcp(a:1,b:2)/d?timeout=soon"} {
		_, err := parseHosts(dsn)
		require.ErrorContains(t, err, "mysql DSN", dsn)
	}
	_, err := parseHosts("u@tcp(a:1,b:2)/d?strict=true")
	require.ErrorContains(t, err, "mysql DSN: strict mode has been removed", "the driver's words, and not its panic")
	for _, list := range []string{"a:1,", ",a:1", "a:1,,b:2", "a:1, ,b:2", "a:1,:3306", ","} {
		_, err := parseHosts("u@tcp(" + list + ")/d")
		require.ErrorContains(t, err, "("+list+") has an empty one")
	}
}

func TestEachHostIsVerifiedByItsOwnName(t *testing.T) {
	t.Parallel()
	h, err := parseHosts("u@tcp(a.example:1,b.example:2)/d?tls=true")
	require.NoError(t, err)
	require.Equal(t, "a.example", h.each[0].TLS.ServerName)
	require.Equal(t, "b.example", h.each[1].TLS.ServerName)
}

// twoHosts are two links to one server each.
type twoHosts struct {
	admin [2]*sql.DB
	link  [2]*faultproxy.Proxy
	hosts *hosts
	pool  *sql.DB
}

func startTwoHosts(t *testing.T) *twoHosts {
	t.Helper()
	w := &twoHosts{}
	dsn := "root@tcp("
	for i := range w.admin {
		server := testserver.StartMariaDB(t)
		var err error
		w.admin[i], err = sql.Open("mysql", server.RootDSN)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, w.admin[i].Close()) })
		w.link[i] = faultproxy.New(t, server.Addr)
		dsn += w.link[i].Addr() + ","
	}
	var err error
	w.hosts, err = parseHosts(dsn[:len(dsn)-1] + ")/")
	require.NoError(t, err)
	w.pool, err = w.hosts.open(func(c *mysql.Config) *mysql.Config {
		c.Timeout, c.ReadTimeout, c.Logger = ample, ample, &mysql.NopLogger{} // a host that is silent is passed over, not given up
		return c
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.pool.Close()) })
	return w
}

func (w *twoHosts) setReadOnly(t *testing.T, host int, on string) {
	t.Helper()
	_, err := w.admin[host].ExecContext(t.Context(), "SET GLOBAL read_only = "+on)
	require.NoError(t, err)
}

// answers returns the port of the server that the pool talks to.
func (w *twoHosts) answers(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	var port string
	require.NoError(t, w.pool.QueryRowContext(ctx, "SELECT @@port").Scan(&port))
	return port
}

func (w *twoHosts) port(t *testing.T, host int) (port string) {
	t.Helper()
	require.NoError(t, w.admin[host].QueryRowContext(t.Context(), "SELECT @@port").Scan(&port))
	return port
}

func TestTheHostThatTakesWritesIsUsed(t *testing.T) {
	t.Parallel()
	w := startTwoHosts(t)
	first, second := w.port(t, 0), w.port(t, 1)
	require.NotEqual(t, first, second)
	w.setReadOnly(t, 0, "1")
	require.Equal(t, second, w.answers(t), "the first is read-only")

	w.setReadOnly(t, 1, "1")
	require.Equal(t, second, w.answers(t), "sessions stay until somebody asks")
	err := w.hosts.confirm(t.Context(), w.pool)
	require.ErrorIs(t, err, errNoPrimary)
	require.Equal(t, faultUnavailable, classifyMySQL(err))
	err = w.pool.PingContext(t.Context())
	require.ErrorIs(t, err, errNoPrimary)
	require.ErrorIs(t, err, errReadOnlyHost)
	require.ErrorContains(t, err, w.link[0].Addr())
	require.ErrorContains(t, err, w.link[1].Addr())

	w.setReadOnly(t, 0, "0")
	require.Equal(t, first, w.answers(t), "it was promoted")
	require.NoError(t, w.hosts.confirm(t.Context(), w.pool))

	w.setReadOnly(t, 1, "0")
	w.setReadOnly(t, 0, "1")
	require.ErrorIs(t, w.hosts.confirm(t.Context(), w.pool), errNoPrimary)
	require.Equal(t, second, w.answers(t), "no session with the demoted is used again")
}

func TestAHostThatIsSilentOrGoneIsPassedOver(t *testing.T) {
	t.Parallel()
	w := startTwoHosts(t)
	second := w.port(t, 1)
	w.setReadOnly(t, 1, "1")
	require.Equal(t, w.port(t, 0), w.answers(t))

	w.link[0].BlackHole()
	w.link[0].Cut()
	w.setReadOnly(t, 1, "0")
	require.Equal(t, second, w.answers(t), "the known primary is silent")

	w.link[0].Refuse()
	w.pool.SetMaxIdleConns(0)
	require.Equal(t, second, w.answers(t), "and then it is gone")
}

// A primary that is parted from its group says that it takes writes, and answers no
// COMMIT. When it is doubted, another that takes writes is used in its place.
func TestADoubtedHostIsTheLastToBeAsked(t *testing.T) {
	t.Parallel()
	w := startTwoHosts(t)
	w.hosts.headStart = ample // so that who is asked first and takes writes is used, however slow
	first, second := w.port(t, 0), w.port(t, 1)
	w.setReadOnly(t, 1, "1")
	require.Equal(t, first, w.answers(t))
	w.pool.SetMaxIdleConns(0)
	w.commitInVain(t)
	require.Equal(t, first, w.answers(t), "no other takes writes")

	w.setReadOnly(t, 1, "0")
	require.Equal(t, first, w.answers(t), "it is not doubted any more")
	w.commitInVain(t)
	require.Equal(t, second, w.answers(t), "another takes writes")
	require.Equal(t, second, w.answers(t), "and stays")
	w.hosts.doubted.Store(0)
	require.Equal(t, second, w.answers(t), "whatever is heard of the first afterwards")

	w.link[0].BlackHole()
	w.link[0].Cut()
	w.hosts.headStart = headStart
	w.hosts.doubted.Store(w.hosts.primary.Load())
	require.Equal(t, second, w.answers(t), "the other is silent")
}

func TestAHostSaysWhetherItTakesWrites(t *testing.T) {
	t.Parallel()
	denied, gone := &mysql.MySQLError{Number: erTableDenied}, mysql.ErrInvalidConn
	for name, c := range map[string]struct {
		readOnly, minority string
		err                error // of the second question
		want               error
		blind              bool
	}{
		"it does":                        {readOnly: "0", minority: "0"},
		"as MariaDB says it":             {readOnly: "OFF", err: &mysql.MySQLError{Number: erBadTable}, blind: true},
		"it is read-only":                {readOnly: "1", want: errReadOnlyHost},
		"it lacks half of its group":     {readOnly: "0", minority: "1", want: errMinority},
		"the account may not see that":   {readOnly: "0", err: denied, blind: true},
		"it goes away while it is asked": {readOnly: "0", err: gone, want: gone},
	} {
		h := &hosts{}
		asked := 0
		ask := func(query string) (string, error) {
			if query == readOnlyQuery {
				return c.readOnly, nil
			}
			asked++
			return c.minority, c.err
		}
		require.ErrorIs(t, h.takesWrites(ask), c.want, name)
		require.Equal(t, c.blind, h.blind.Load(), name)
		if before := asked; c.blind {
			require.NoError(t, h.takesWrites(ask))
			require.Equal(t, before, asked, "it is not asked again")
		}
	}
}

// deadEnd is a host with which no session comes about.
type deadEnd struct {
	driver.Connector
	err error
}

func (d deadEnd) Connect(context.Context) (driver.Conn, error) { return nil, d.err }

// A connection that breaks while the session is set up is an outage, in whatever
// words the driver has for it; what the server says is what it says.
func TestASessionThatDoesNotComeAboutIsAnOutage(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]fault{
		errors.New("bad connection"):     faultUnavailable,
		errors.New("busy buffer"):        faultUnavailable,
		mysql.ErrInvalidConn:             faultUnavailable,
		context.DeadlineExceeded:         faultUnavailable,
		&mysql.MySQLError{Number: 1045}:  faultPermanent,
		&mysql.MySQLError{Number: 1040}:  faultUnavailable,
		&mysql.MySQLError{Number: 12345}: faultPermanent,
	} {
		_, got := connector{deadEnd{err: err}}.Connect(t.Context())
		require.ErrorIs(t, got, err)
		require.Equal(t, want, classifyMySQL(got), err.Error())
	}
}

// commitInVain sends a COMMIT to the first host that has no answer.
func (w *twoHosts) commitInVain(t *testing.T) {
	t.Helper()
	conn, err := w.pool.Conn(t.Context())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }() // it is broken
	w.link[0].BlackHole()
	defer w.link[0].Pass()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = conn.ExecContext(ctx, commitText)
	require.Error(t, err)
}

// heldConnector makes its sessions when it is let go.
type heldConnector struct {
	driver.Connector
	once        sync.Once
	asked, goOn chan struct{}
}

func (c *heldConnector) Connect(ctx context.Context) (driver.Conn, error) {
	c.once.Do(func() { close(c.asked) })
	<-c.goOn
	return c.Connector.Connect(ctx)
}

// A session that was asked for before another host was found, and comes after it,
// does not bring its host back.
func TestALateSessionDoesNotBringAHostBack(t *testing.T) {
	t.Parallel()
	w := startTwoHosts(t)
	w.setReadOnly(t, 1, "1")
	require.Equal(t, w.port(t, 0), w.answers(t))
	var each [2]driver.Connector
	for i, c := range w.hosts.each {
		var err error
		each[i], err = mysql.NewConnector(c)
		require.NoError(t, err)
	}
	held := &heldConnector{Connector: each[0], asked: make(chan struct{}), goOn: make(chan struct{})}
	late := sql.OpenDB(&primaryConnector{hosts: w.hosts, each: []driver.Connector{held, each[1]}})
	t.Cleanup(func() { require.NoError(t, late.Close()) })
	port := make(chan string)
	go func() {
		var answer string
		_ = late.QueryRowContext(t.Context(), "SELECT @@port").Scan(&answer)
		port <- answer
	}()
	<-held.asked
	w.setReadOnly(t, 1, "0")
	w.hosts.primary.Store(1)
	close(held.goOn)
	require.Equal(t, w.port(t, 1), <-port)
	require.EqualValues(t, 1, w.hosts.primary.Load())
}

// Nothing is written, so that only the heartbeat can notice.
func TestTheHeartbeatLeavesADemotedHost(t *testing.T) {
	t.Parallel()
	w := startTwoHosts(t)
	for i, admin := range w.admin {
		_, err := admin.ExecContext(t.Context(), "CREATE DATABASE shop CHARACTER SET utf8mb4")
		require.NoError(t, err)
		require.NoError(t, Migrate(t.Context(), Options{DSN: "root@tcp(" + w.link[i].Addr() + ")/shop"}))
	}
	w.setReadOnly(t, 1, "1")
	s := openHarness(t, Options{DSN: "root@tcp(" + w.link[0].Addr() + "," + w.link[1].Addr() + ")/shop"})
	first := s.Identity()
	require.NoError(t, s.Health())

	w.setReadOnly(t, 0, "1")
	require.Eventually(t, func() bool { return errors.Is(s.Health(), order.ErrUnavailable) }, time.Minute, 20*time.Millisecond,
		"nobody takes writes")
	w.setReadOnly(t, 1, "0")
	require.Eventually(t, func() bool { return s.Health() == nil && s.Identity() != first }, time.Minute, 20*time.Millisecond,
		"the other one does")
}

func TestAWrongPasswordOnAllHostsDoesNotMendItself(t *testing.T) {
	t.Parallel()
	p := &primaryConnector{hosts: &hosts{each: []*mysql.Config{{Addr: "a:1"}, {Addr: "b:2"}}}}
	denied := &mysql.MySQLError{Number: 1045, Message: "access denied"}
	err := p.nobodyTakesWrites([]error{denied, denied})
	require.Equal(t, faultPermanent, classifyMySQL(err))
	require.ErrorContains(t, err, "a:1")
	err = p.nobodyTakesWrites([]error{denied, errors.Join(mysql.ErrInvalidConn)})
	require.Equal(t, faultUnavailable, classifyMySQL(err), "the other host may come back")
}
