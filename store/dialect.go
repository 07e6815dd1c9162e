package store

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/oncegate/oncegate/order"
)

// dialect is what differs between the engines.
type dialect struct {
	name       string // "mysql", "mariadb", "sqlite"
	migrations string // folder below migrations/

	begin      string // opens a transaction; empty where sessions run without autocommit
	forUpdate  string // suffix of a locking read
	skipLocked string // suffix of a locking read that passes over locked rows, where the engine can
	passesOver bool   // it can
	now        string // the database's clock, in the form of a time column
	identity   string // expression that names the server
	// byKey follows a table whose rows are to be locked by their primary key: MySQL
	// would go through a small table, and wait for rows that nobody asked for.
	byKey string
	// byIndex follows a table that is to be read by that index alone, where the
	// engine would choose another.
	byIndex func(index string) string
	// later is what that clock will show.
	later func(by time.Duration) string
	// onDuplicate continues an INSERT with the update of an existing row.
	onDuplicate func(key string) string

	// money writes an amount as an exact literal of the column's type. A bound
	// string would be compared and subtracted as a float.
	money func(b []byte, a order.Amount) []byte
	// instant is the bind value of a time column.
	instant func(t time.Time) any
	// classify sorts a driver's error.
	classify func(err error) fault
}

// money scans an amount: DECIMAL text, or whole hundredths.
type money struct{ order.Amount }

// Scan implements [sql.Scanner].
func (m *money) Scan(src any) error {
	var err error
	switch v := src.(type) {
	case int64:
		m.Amount = order.Amount(v)
	case []byte:
		m.Amount, err = order.ParseAmount(v)
	case string:
		m.Amount, err = order.ParseAmount(v)
	default:
		err = fmt.Errorf("cannot read an amount from %T", src)
	}
	return err
}

// instant scans a time: DATETIME(3), or whole milliseconds since 1970.
type instant struct{ time.Time }

// Scan implements [sql.Scanner].
func (i *instant) Scan(src any) error {
	switch v := src.(type) {
	case time.Time:
		i.Time = v.UTC()
	case int64:
		i.Time = time.UnixMilli(v).UTC()
	default:
		return fmt.Errorf("cannot read a time from %T", src)
	}
	return nil
}

var (
	_ sql.Scanner = (*money)(nil)
	_ sql.Scanner = (*instant)(nil)
)

// nullable binds an empty text as NULL.
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}
