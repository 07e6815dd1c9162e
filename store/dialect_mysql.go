package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncegate/oncegate/order"
)

// serverInfo is what a first connection learns of the server.
type serverInfo struct {
	version  string
	mariadb  bool
	tidb     bool
	identity string // expression that names the server
}

func mysqlDialect(server serverInfo) *dialect {
	d := &dialect{
		name:        "mysql",
		migrations:  "mysql",
		forUpdate:   " FOR UPDATE",
		skipLocked:  " FOR UPDATE SKIP LOCKED",
		passesOver:  true,
		now:         "UTC_TIMESTAMP(3)",
		byKey:       " FORCE INDEX (PRIMARY)",
		byIndex:     func(index string) string { return " FORCE INDEX (" + index + ")" },
		later:       mysqlLater,
		identity:    server.identity,
		onDuplicate: func(string) string { return " ON DUPLICATE KEY UPDATE " },
		money:       func(b []byte, a order.Amount) []byte { return a.Append(b) },
		instant:     func(t time.Time) any { return t.UTC() },
		classify:    classifyMySQL,
	}
	if server.mariadb {
		d.name = "mariadb"
	}
	if server.tidb { // it takes the words, and then no lock (https://github.com/pingcap/tidb/issues/69720)
		d.skipLocked, d.passesOver = d.forUpdate, false
	}
	return d
}

func mysqlLater(by time.Duration) string {
	return "UTC_TIMESTAMP(3) + INTERVAL " + strconv.FormatInt(by.Microseconds(), 10) + " MICROSECOND"
}

// strictMode is pinned for every session: without it a key that is too long is
// cut, and two different keys become one.
const strictMode = "'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"

// session returns the driver's configuration for one pool. Whatever the DSN
// says, code pins what the decision rests on: isolation, strict mode, checked
// indexes, UTF-8, UTC, the order of the time limits, and matched (not changed)
// row counts.
func (o *Options) session(base *mysql.Config, mariadb, autocommit bool) *mysql.Config {
	c := base.Clone()
	c.ParseTime = true
	c.Loc = time.UTC
	c.ClientFoundRows = true
	c.InterpolateParams = true // one round trip a statement
	c.MultiStatements = false
	c.RejectReadOnly = true // a demoted primary costs a connection, not a transaction
	c.CheckConnLiveness = true
	c.AllowNativePasswords = true
	c.Timeout = o.ConnectTimeout
	c.ReadTimeout = o.ReadTimeout
	c.WriteTimeout = o.ReadTimeout
	c.Logger = driverLog{o.Logger}
	_ = c.Apply(mysql.TimeTruncate(0)) // it cannot fail
	c.Params = pinned(c.Params, o.variables(mariadb, autocommit))
	return c
}

// variables are the system variables of a session that code pins.
func (o *Options) variables(mariadb, autocommit bool) map[string]string {
	vars := map[string]string{
		"sql_mode":                 strictMode,
		"time_zone":                "'+00:00'",
		"innodb_lock_wait_timeout": seconds(o.LockWaitTimeout),
		// Of tables: a year by default, for which the server keeps who has left. And
		// whoever comes waits behind a change of a table that waits.
		"lock_wait_timeout": seconds(o.LockWaitTimeout),
		"wait_timeout":      seconds(o.WaitTimeout),
		"autocommit":        "1",
		// Beyond it an account, or a record, would be taken for missing.
		"sql_select_limit": "18446744073709551615",
		// Without them the last word of the indexes may be skipped.
		"unique_checks": "1", "foreign_key_checks": "1",
		// Texts are UTF-8: read as anything else, two of them may become one.
		"character_set_client": "utf8mb4", "character_set_connection": "utf8mb4", "character_set_results": "utf8mb4",
	}
	if !autocommit {
		// Every statement is part of a transaction, so none can slip out of one:
		// after a deadlock the server would otherwise run the next one by itself.
		vars["autocommit"] = "0"
	}
	isolation := "transaction_isolation"
	if mariadb {
		isolation = "tx_isolation" // MariaDB below 11.1 knows no other name
	}
	vars[isolation] = "'READ-COMMITTED'"
	return vars
}

// pinned is what a session sets: what the DSN says, but for the variables that
// code pins. The driver sends all of them in one statement in no certain order,
// so none may be there twice, however the DSN spells it.
func pinned(params, vars map[string]string) map[string]string {
	all := maps.Clone(vars)
	for param, value := range params {
		name := variableName(param)
		_, ours := vars[name]
		switch {
		case ours, name == "tx_isolation", name == "transaction_isolation", name == "collation_connection":
		default:
			all[param] = value
		}
	}
	return all
}

// variableName is the name of the variable that a parameter of a DSN sets. Case
// does not matter to the server, and a scope may stand before the name.
func variableName(param string) string {
	name := strings.ToLower(strings.ReplaceAll(param, "`", ""))
	name = strings.TrimPrefix(strings.TrimSpace(name), "@@")
	for _, scope := range []string{"session", "local"} {
		if rest, ok := strings.CutPrefix(name, scope); ok && rest != "" && strings.ContainsRune(". \t", rune(rest[0])) {
			name = strings.TrimLeft(rest, ". \t")
		}
	}
	return name
}

func seconds(d time.Duration) string {
	return strconv.FormatInt(int64(max(1, d/time.Second)), 10)
}

// probe connects once and tells MySQL from MariaDB, whose session variables
// and identities have other names.
func probe(ctx context.Context, h *hosts, timeout time.Duration) (server serverInfo, err error) {
	db, err := h.open(func(c *mysql.Config) *mysql.Config {
		c.Timeout, c.ReadTimeout, c.WriteTimeout = timeout, timeout, timeout
		// Which of the two names of the isolation level it knows is not known yet.
		delete(c.Params, "tx_isolation")
		delete(c.Params, "transaction_isolation")
		return c
	})
	if err != nil {
		return server, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var comment string
	if err := db.QueryRowContext(ctx, "SELECT VERSION(), @@version_comment").Scan(&server.version, &comment); err != nil {
		return server, fmt.Errorf("ask the server for its version: %w", err)
	}
	server.mariadb = strings.Contains(server.version, "MariaDB")
	server.tidb = isTiDB(server.version, comment)
	// MariaDB below 10.6.16 and 10.11.6 has no identity of its own.
	candidates := []string{"@@server_uuid"}
	if server.mariadb {
		candidates = []string{"@@server_uid", "CONCAT(@@hostname, ':', @@port, ':', @@server_id)"}
	}
	for _, server.identity = range candidates {
		var id string
		if err = db.QueryRowContext(ctx, "SELECT "+server.identity).Scan(&id); err == nil {
			return server, nil
		}
	}
	return server, fmt.Errorf("ask the server for its identity: %w", err)
}

// isTiDB tells TiDB by what it says of itself: its version may be configured to be
// that of a MySQL.
func isTiDB(version, comment string) bool { return strings.Contains(version+comment, "TiDB") }

// driverLog sends what the driver has to say (a connection it gave up, mostly)
// to the log at debug level: the error itself reaches its caller.
type driverLog struct{ logger *slog.Logger }

// Print implements [mysql.Logger].
func (l driverLog) Print(v ...any) { l.logger.Debug("mysql driver", "message", fmt.Sprint(v...)) }

// Server error numbers, from the MySQL and MariaDB manuals.
const (
	erDupEntry          = 1062
	erDupEntryWithName  = 1586
	erNoReferencedRow   = 1452
	erLockDeadlock      = 1213
	erLockWaitTimeout   = 1205
	erCheckread         = 1020 // MariaDB: the snapshot is outdated, the transaction rolled back
	erConCount          = 1040
	erServerShutdown    = 1053
	erUserLimit         = 1203
	erQueryInterrupted  = 1317
	erOptionPreventsRun = 1290 // read only
	erReadOnlyTx        = 1792
	erReadOnlyMode      = 1836
	erRollbackAtCommit  = 3101 // group replication refused the transaction
	erIdleClosed        = 4031
	erConnectionKilled  = 1927 // MariaDB
	erSessionKilled     = 3169
	erBeforeDML         = 3098 // group replication: the member joins, leaves or hands over (or a table has no primary key)
	erRunHook           = 3100 // group replication: the member is leaving its group
	erHoldTimeout       = 3781 // group replication: the new primary has not caught up yet
	erHoldKilled        = 3782
	erHoldMemberStatus  = 3783
	erGroupNotOnline    = 3796 // group replication: the member is in no state to serve
	erGroupWaitBefore   = 3797
	erGroupWaitAfter    = 3798
	erGroupStopping     = 3799
	erDiskFull          = 1021
	erOutOfMemory       = 1037
	erOutOfResources    = 1041
	erCannotMakeThread  = 1135
	erUserResources     = 1226 // connections of this account, mostly
	erHostBlocked       = 1129 // until somebody flushes the hosts
	erLockTableFull     = 1206 // InnoDB has no room for more locks
	erTableChanged      = 1412 // by DDL, since the transaction began
	erTooManyWriters    = 1637
	erOfflineMode       = 3032 // which a member goes into that was expelled from its group
	erNotAvailable      = 3168
	erNoBackend         = 2003 // a client's number: MySQL Router, when it reaches no server
	erStatementTimeout  = 1969 // MariaDB: max_statement_time
	erQueryTimeout      = 3024 // MySQL: max_execution_time
	erTableFull         = 1114
	erErrorDuringCommit = 1180
	erBinlogImpossible  = 1598 // MySQL: the log's disk failed during COMMIT, the server ends itself
	erUnknownCom        = 1047 // a proxy or cluster node that is not ready
	erTableDenied       = 1142
	erSyntax            = 1064
	erBadTable          = 1146
)

func classifyMySQL(err error) fault {
	if errors.Is(err, errNoPrimary) || errors.Is(err, errConnect) { // whatever the single hosts said
		return faultUnavailable
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		switch e.Number {
		case erDupEntry, erDupEntryWithName:
			return faultDuplicate
		case erNoReferencedRow:
			return faultReference
		case erLockWaitTimeout:
			return faultLockWait
		case erLockDeadlock, erCheckread, erRollbackAtCommit, erTableChanged:
			return faultConflict
		case erConCount, erServerShutdown, erUserLimit, erQueryInterrupted, erOptionPreventsRun, erReadOnlyTx,
			erReadOnlyMode, erIdleClosed, erDiskFull, erTableFull, erErrorDuringCommit, erUnknownCom,
			erConnectionKilled, erSessionKilled, erBeforeDML, erRunHook, erHoldTimeout, erHoldKilled, erHoldMemberStatus,
			erGroupNotOnline, erGroupWaitBefore, erGroupWaitAfter, erGroupStopping, erBinlogImpossible,
			erOutOfMemory, erOutOfResources, erCannotMakeThread, erUserResources, erStatementTimeout, erQueryTimeout,
			erHostBlocked, erLockTableFull, erTooManyWriters, erOfflineMode, erNotAvailable, erNoBackend:
			return faultUnavailable
		default:
			return faultPermanent
		}
	}
	var ne net.Error
	switch {
	case errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &ne):
		return faultUnavailable
	default:
		return classifyCommon(err)
	}
}
