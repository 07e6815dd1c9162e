package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// hosts are the servers that a DSN lists, of whom one at a time takes writes.
// All pools of a store share what is known of it, so that they never talk to
// two of them. Safe for concurrent use.
type hosts struct {
	each    []*mysql.Config // one per host, in the order of the DSN
	primary atomic.Int32    // index of the host that last said that it takes writes, or nobody
	doubted atomic.Int32    // index of the host that is to be asked after the others while it is the primary, or nobody
	blind   atomic.Bool     // the account may not see the group, or there is none
	// headStart is how long the known primary is waited for before the others are
	// asked as well.
	headStart time.Duration
}

const nobody = -1

// errNoPrimary says that none of the hosts takes writes, or could be asked.
var errNoPrimary = errors.New("no host of the DSN takes writes")

// Why a host that could be asked is not the primary.
var (
	errReadOnlyHost = errors.New("the host is read-only")
	errMinority     = errors.New("the host does not reach the majority of its group")
)

// parseHosts reads a DSN of go-sql-driver/mysql whose address may list several
// hosts: user:password@tcp(db1:3306,db2:3306)/name.
func parseHosts(dsn string) (*hosts, error) {
	h := &hosts{headStart: headStart}
	h.primary.Store(nobody)
	h.doubted.Store(nobody)
	before, list, after := splitAddress(dsn)
	addresses := strings.Split(list, ",")
	for _, address := range addresses {
		address = strings.TrimSpace(address)
		// The driver would take an address without a host for this machine.
		if len(addresses) > 1 && (address == "" || address[0] == ':') {
			return nil, fmt.Errorf("mysql DSN: the list of hosts (%s) has an empty one", list)
		}
		c, err := parseDSN(before + address + after)
		if err != nil {
			return nil, fmt.Errorf("mysql DSN: %w", err)
		}
		h.each = append(h.each, c)
	}
	return h, nil
}

// parseDSN is the driver's own. It panics at a parameter that it has given up.
func parseDSN(dsn string) (c *mysql.Config, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return mysql.ParseDSN(dsn)
}

// splitAddress cuts a DSN around the address in parentheses, where the driver
// looks for it: before the last slash, and behind the last @ before that.
func splitAddress(dsn string) (before, address, after string) {
	end := strings.LastIndexByte(dsn, '/') - 1
	if end < 0 || dsn[end] != ')' {
		return dsn, "", ""
	}
	at := strings.LastIndexByte(dsn[:end], '@') + 1
	begin := at + strings.IndexByte(dsn[at:end], '(') + 1
	if begin == at {
		return dsn, "", ""
	}
	return dsn[:begin], dsn[begin:end], dsn[end:]
}

// open opens a pool of sessions as configured, on the only host, or on the one
// that takes writes.
func (h *hosts) open(configured func(*mysql.Config) *mysql.Config) (*sql.DB, error) {
	connectors := make([]driver.Connector, len(h.each))
	for i, c := range h.each {
		c, err := mysql.NewConnector(configured(c.Clone()))
		if err != nil {
			return nil, fmt.Errorf("mysql DSN: %w", err)
		}
		connectors[i] = connector{c}
	}
	if len(connectors) == 1 {
		return sql.OpenDB(connectors[0]), nil
	}
	return sql.OpenDB(&primaryConnector{hosts: h, each: connectors}), nil
}

// errConnect says that no session could be made, and the server had no say in it.
var errConnect = errors.New("connect")

// connector makes sessions with one host.
type connector struct{ driver.Connector }

// Connect implements [driver.Connector]. What ends the making of a session comes in
// many forms, some of them the driver's own secret; the next try may do better.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	s, err := c.session(ctx)
	if err == nil {
		return &guardedSession{session: s}, nil
	}
	if _, answered := errors.AsType[*mysql.MySQLError](err); answered {
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", errConnect, err)
}

func (c connector) session(ctx context.Context) (s session, err error) {
	defer caught(&err)
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return asSession(conn)
}

// confirm asks whether the primary still takes writes. When it does not, its
// sessions are given up, those of the reads as well: a demoted server answers
// reads, and does not know the newest orders.
func (h *hosts) confirm(ctx context.Context, db *sql.DB) error {
	if h == nil || len(h.each) == 1 {
		return nil
	}
	host := h.primary.Load()
	err := h.takesWrites(func(query string) (value string, err error) {
		err = db.QueryRowContext(ctx, query).Scan(&value)
		return value, err
	})
	if isStandby(err) {
		h.primary.CompareAndSwap(host, nobody)
		return fmt.Errorf("%w: %w", errNoPrimary, err)
	}
	return err
}

const (
	// readOnlyQuery has the same answer for MySQL, whose super_read_only implies
	// it, and for MariaDB.
	readOnlyQuery = "SELECT @@GLOBAL.read_only"
	// groupQuery has a member of Group Replication say whether it lacks half of its
	// group or more: it then takes statements, and can commit none.
	groupQuery = "SELECT COALESCE(SUM(member_state = 'UNREACHABLE') * 2 >= COUNT(*), 0)" +
		" FROM performance_schema.replication_group_members"
)

// takesWrites returns nil where a host says that it does. The account may need a
// grant for the second question; without it the group stays unknown.
func (h *hosts) takesWrites(ask func(query string) (string, error)) error {
	value, err := ask(readOnlyQuery)
	switch {
	case err != nil:
		return err
	case !isOff(value):
		return errReadOnlyHost
	case h.blind.Load():
		return nil
	}
	value, err = ask(groupQuery)
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && (e.Number == erTableDenied || e.Number == erBadTable) {
		h.blind.Store(true)
		return nil
	}
	if err == nil && value != "0" {
		return errMinority
	}
	return err
}

func isOff(value string) bool { return value == "0" || strings.EqualFold(value, "OFF") }

func isStandby(err error) bool { return errors.Is(err, errReadOnlyHost) || errors.Is(err, errMinority) }

// primaryConnector makes sessions with the host that takes writes.
type primaryConnector struct {
	hosts *hosts
	each  []driver.Connector
}

// Driver implements [driver.Connector].
func (p *primaryConnector) Driver() driver.Driver { return p.each[0].Driver() }

// headStart is far above a handshake on a network of one place.
const headStart = 250 * time.Millisecond

// Connect implements [driver.Connector]. The known primary is asked first, or last
// when it is doubted. When whoever is first fails, or takes long, the others are
// asked at the same time, so that a host that does not answer holds up nobody; the
// first that takes writes is the primary.
func (p *primaryConnector) Connect(ctx context.Context) (driver.Conn, error) {
	for {
		known := p.hosts.primary.Load()
		won, err := p.elect(ctx, known, p.hosts.doubted.CompareAndSwap(known, nobody))
		if err != nil {
			return nil, err
		}
		if p.hosts.primary.CompareAndSwap(known, won.host) || p.hosts.primary.Load() == won.host {
			return won, nil
		}
		// Meanwhile somebody has found another: to go back to this one would be
		// to follow whoever asked earlier and was slower.
		_ = won.Close()
	}
}

// elect asks the hosts in their order and returns a session with the first that
// takes writes.
func (p *primaryConnector) elect(ctx context.Context, known int32, doubted bool) (*hostSession, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	second, begin := context.WithTimeout(ctx, p.hosts.headStart)
	defer begin()
	var ahead atomic.Int32 // of those who are asked first, how many have not failed
	first := func(host int32) bool { return known == nobody || (host == known) != doubted }
	for host := range int32(len(p.each)) { //nolint:gosec // the hosts of one DSN
		if first(host) {
			ahead.Add(1)
		}
	}
	var (
		winner   atomic.Pointer[hostSession]
		asked    sync.WaitGroup
		failures = make([]error, len(p.each))
	)
	for host := range int32(len(p.each)) { //nolint:gosec // as above
		asked.Go(func() {
			if !first(host) {
				<-second.Done()
			}
			s, err := p.ask(ctx, host)
			failures[host] = err
			switch {
			case err != nil:
				if first(host) && ahead.Add(-1) == 0 {
					begin()
				}
			case winner.CompareAndSwap(nil, s):
				cancel() // the others may stop
			default:
				_ = s.Close() // another was faster
			}
		})
	}
	asked.Wait()
	if won := winner.Load(); won != nil {
		return won, nil
	}
	return nil, p.nobodyTakesWrites(failures)
}

// ask connects to a host and has it say that it takes writes.
func (p *primaryConnector) ask(ctx context.Context, host int32) (*hostSession, error) {
	conn, err := p.each[host].Connect(ctx)
	if err != nil {
		return nil, err
	}
	s, err := asSession(conn)
	if err != nil {
		return nil, err
	}
	err = p.hosts.takesWrites(func(query string) (string, error) { return value(ctx, s, query) })
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &hostSession{session: s, hosts: p.hosts, host: host}, nil
}

// value asks for a single value.
func value(ctx context.Context, s session, query string) (text string, err error) {
	defer caught(&err) // in rows, which the session does not guard
	rows, err := s.QueryContext(ctx, query, nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(values); err != nil {
		return "", fmt.Errorf("ask whether the host takes writes: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	if b, ok := values[0].([]byte); ok {
		return string(b), nil
	}
	return fmt.Sprint(values[0]), nil
}

// nobodyTakesWrites tells a mistake that all hosts name alike, as a wrong
// password, from what may mend itself.
func (p *primaryConnector) nobodyTakesWrites(failures []error) error {
	named := make([]error, len(failures))
	passing := false
	for i, err := range failures {
		named[i] = fmt.Errorf("%s: %w", p.hosts.each[i].Addr, err)
		passing = passing || isStandby(err) || classifyMySQL(err) != faultPermanent
	}
	if !passing {
		return errors.Join(named...)
	}
	return fmt.Errorf("%w: %w", errNoPrimary, errors.Join(named...))
}

const commitText = "COMMIT"

// hostSession is a session that the pool gives up when its host is not the
// primary any more.
type hostSession struct {
	session
	hosts *hosts
	host  int32
}

// ExecContext implements [driver.ExecerContext]. A primary that leaves a COMMIT
// without success is doubted: one that is parted from the rest of its group takes
// connections and statements, and says that it takes writes, for as long as it does
// not give up, which by default is for ever. Meanwhile the rest may have elected
// another.
func (s *hostSession) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	r, err := s.session.ExecContext(ctx, text, args)
	if err != nil && text == commitText {
		s.hosts.doubted.Store(s.host)
	}
	return r, err
}

// ResetSession implements [driver.SessionResetter].
func (s *hostSession) ResetSession(ctx context.Context) error {
	if s.hosts.primary.Load() != s.host {
		return driver.ErrBadConn
	}
	return s.session.ResetSession(ctx)
}

// IsValid implements [driver.Validator].
func (s *hostSession) IsValid() bool {
	return s.hosts.primary.Load() == s.host && s.session.IsValid()
}
