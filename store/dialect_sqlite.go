package store

import (
	"errors"
	"net/url"
	"strconv"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/oncegate/oncegate/order"
)

// sqliteScheme begins the DSN of the embedded engine: "sqlite:/path/to/file.db".
const sqliteScheme = "sqlite:"

const sqliteNow = "CAST(round(1000 * unixepoch('now', 'subsec')) AS INTEGER)"

// sqliteDialect is the embedded engine: one writer at a time for the whole file
// (BEGIN IMMEDIATE) takes the place of row locks.
func sqliteDialect() *dialect {
	return &dialect{
		name:        "sqlite",
		migrations:  "sqlite",
		begin:       "BEGIN IMMEDIATE",
		now:         sqliteNow,
		byIndex:     func(index string) string { return " INDEXED BY " + index },
		later:       func(by time.Duration) string { return sqliteNow + " + " + strconv.FormatInt(by.Milliseconds(), 10) },
		identity:    "(SELECT identity FROM server)",
		onDuplicate: func(key string) string { return " ON CONFLICT (" + key + ") DO UPDATE SET " },
		money:       func(b []byte, a order.Amount) []byte { return strconv.AppendInt(b, int64(a), 10) },
		instant:     func(t time.Time) any { return t.UnixMilli() },
		classify:    classifySQLite,
	}
}

// sqliteDSN pins what the decision rests on: durable commits, enforced foreign
// keys, and a bounded wait for the one writer.
func (o *Options) sqliteDSN(path string) string {
	q := url.Values{}
	q.Add("_pragma", "busy_timeout("+strconv.FormatInt(o.ReadTimeout.Milliseconds(), 10)+")")
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "synchronous(FULL)")
	q.Add("_pragma", "foreign_keys(1)")
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

func classifySQLite(err error) fault {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return classifyCommon(err)
	}
	switch code := e.Code(); {
	case code == sqlite3.SQLITE_CONSTRAINT_UNIQUE, code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return faultDuplicate
	case code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return faultReference
	case code&0xff == sqlite3.SQLITE_BUSY, code&0xff == sqlite3.SQLITE_LOCKED:
		return faultLockWait
	case code&0xff == sqlite3.SQLITE_FULL, code&0xff == sqlite3.SQLITE_IOERR, code&0xff == sqlite3.SQLITE_INTERRUPT, code&0xff == sqlite3.SQLITE_READONLY:
		return faultUnavailable
	default:
		return faultPermanent
	}
}
