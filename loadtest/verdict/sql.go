package verdict

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncegate/oncegate/loadtest/decimal"
)

// sqliteScheme begins the DSN of an embedded database: "sqlite:/path/to/file.db".
const sqliteScheme = "sqlite:"

// Database is the database behind a deployment.
type Database struct {
	*sql.DB
	embedded bool // SQLite: amounts are whole hundredths, times are milliseconds
}

// OpenDB opens the database behind a deployment: a DSN of go-sql-driver/mysql,
// or "sqlite:" and a path. The drivers "mysql" and "sqlite" must be linked in.
func OpenDB(dsn string) (*Database, error) {
	driver := "mysql"
	path, embedded := strings.CutPrefix(dsn, sqliteScheme)
	if embedded {
		driver = "sqlite"
		dsn = "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=rw&_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return &Database{db, embedded}, nil
}

// Ready tells whether an audit can be made: the database answers and has the
// tables of a deployment.
func (db *Database) Ready(ctx context.Context) error {
	var n int
	for _, table := range []string{"orders", "idempotency_records"} {
		if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM "+table+" LIMIT 1) AS any_row").Scan(&n); err != nil {
			return fmt.Errorf("the database of the audit: %w", err)
		}
	}
	return nil
}

// Earlier looks for a user who has an order or a key that would be taken for one of the run:
// "" before its first request, unless a run with this name was there before.
func Earlier(ctx context.Context, db *Database, users []string, scope Scope) (user string, err error) {
	for some := range slices.Chunk(users, usersPerQuery) {
		where, args := selection(some, scope)
		for _, table := range []string{"orders", "idempotency_records"} { // what was refused has no order
			err := db.QueryRowContext(ctx, "SELECT user_id FROM "+table+" WHERE "+where+" LIMIT 1", args...).Scan(&user)
			if err == nil {
				return user, nil
			}
			if !errors.Is(err, sql.ErrNoRows) {
				return "", fmt.Errorf("look for an earlier run: %w", err)
			}
		}
	}
	return "", nil
}

// usersPerQuery bounds the length of one IN list.
const usersPerQuery = 200

// FromSQL reads the rows of the users in one snapshot, so that an order and its
// key are never seen apart because they were committed in between. The duplicate
// query goes over the whole table.
func FromSQL(ctx context.Context, db *Database, users []string, scope Scope) (*Truth, error) {
	snapshot := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	if db.embedded {
		snapshot = nil // the one level that there is
	}
	tx, err := db.BeginTx(ctx, snapshot)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	t := &Truth{Source: "sql", Keys: map[KeyID]Recorded{}}
	if err := t.readStrangers(ctx, tx, users, scope); err != nil {
		return nil, err
	}
	for some := range slices.Chunk(users, usersPerQuery) {
		if err := t.readRows(ctx, tx, some, scope, db.embedded); err != nil {
			return nil, err
		}
		if err := t.readKeys(ctx, tx, some, scope); err != nil {
			return nil, err
		}
	}
	return t, t.readGroups(ctx, tx)
}

func (t *Truth) readRows(ctx context.Context, tx *sql.Tx, users []string, scope Scope, cents bool) error {
	where, args := selection(users, scope)
	rows, err := tx.QueryContext(ctx, `SELECT LOWER(HEX(order_id)), user_id, COALESCE(idempotency_key, ''), line_no,
		COALESCE(external_order_no, ''), sku, quantity, amount, status FROM orders WHERE `+where, args...)
	if err != nil {
		return fmt.Errorf("audit the orders: %w", err)
	}
	defer func() { _ = rows.Close() }() // its error is rows.Err
	for rows.Next() {
		var r Row
		var id, amount string
		if err := rows.Scan(&id, &r.User, &r.Key, &r.Line, &r.ExternalOrderNo, &r.SKU, &r.Quantity, &amount, &r.Status); err != nil {
			return fmt.Errorf("audit the orders: %w", err)
		}
		r.ID = uuid(id)
		if cents {
			r.Hundredths, err = strconv.ParseInt(amount, 10, 64)
		} else {
			r.Hundredths, err = decimal.Hundredths(amount)
		}
		if err != nil {
			return fmt.Errorf("audit order %s: %w", r.ID, err)
		}
		t.Rows = append(t.Rows, r)
	}
	return rows.Err()
}

func (t *Truth) readKeys(ctx context.Context, tx *sql.Tx, users []string, scope Scope) error {
	where, args := selection(users, scope)
	rows, err := tx.QueryContext(ctx, `SELECT user_id, idempotency_key, status, COALESCE(LOWER(HEX(order_id)), '') FROM idempotency_records WHERE `+where, args...)
	if err != nil {
		return fmt.Errorf("audit the keys: %w", err)
	}
	defer func() { _ = rows.Close() }() // its error is rows.Err
	states := map[int]string{1: "in_progress", 2: "succeeded", 3: "failed"}
	for rows.Next() {
		var k KeyID
		var status int
		var id string
		if err := rows.Scan(&k.User, &k.Key, &status, &id); err != nil {
			return fmt.Errorf("audit the keys: %w", err)
		}
		state, known := states[status]
		if !known {
			state = fmt.Sprintf("status %d", status)
		}
		t.Keys[k] = Recorded{State: state, OrderID: uuid(id)}
	}
	return rows.Err()
}

// readGroups asks the plain question over the whole table. The unique index makes
// an answer impossible; the audit does not take its word.
func (t *Truth) readGroups(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, `SELECT user_id, idempotency_key, COUNT(*) FROM orders
		WHERE idempotency_key IS NOT NULL GROUP BY user_id, idempotency_key, line_no HAVING COUNT(*) > 1 LIMIT 1000`)
	if err != nil {
		return fmt.Errorf("audit for duplicates: %w", err)
	}
	defer func() { _ = rows.Close() }() // its error is rows.Err
	for rows.Next() {
		f := Finding{Kind: Duplicate}
		var n int
		if err := rows.Scan(&f.User, &f.Key, &n); err != nil {
			return fmt.Errorf("audit for duplicates: %w", err)
		}
		f.Detail = fmt.Sprintf("GROUP BY … HAVING COUNT(*) > 1: %d rows", n)
		t.Groups = append(t.Groups, f)
	}
	return rows.Err()
}

// readStrangers looks for orders with a key of the run that are somebody else's.
func (t *Truth) readStrangers(ctx context.Context, tx *sql.Tx, users []string, scope Scope) error {
	known := make(map[string]bool, len(users))
	for _, u := range users {
		known[u] = true
	}
	rows, err := tx.QueryContext(ctx, "SELECT user_id, idempotency_key FROM orders WHERE idempotency_key LIKE ?", scope.KeyPrefix+"%")
	if err != nil {
		return fmt.Errorf("audit for strangers: %w", err)
	}
	defer func() { _ = rows.Close() }() // its error is rows.Err
	for rows.Next() {
		f := Finding{Kind: Stray, Detail: "an order with a key of this run belongs to a user who sent nothing in it"}
		if err := rows.Scan(&f.User, &f.Key); err != nil {
			return fmt.Errorf("audit for strangers: %w", err)
		}
		if !known[f.User] {
			t.Groups = append(t.Groups, f)
		}
	}
	return rows.Err()
}

func selection(users []string, scope Scope) (string, []any) {
	args := make([]any, len(users), len(users)+1)
	for i, u := range users {
		args[i] = u
	}
	where := "user_id IN (" + strings.TrimSuffix(strings.Repeat("?,", len(users)), ",") + ")"
	if !scope.OwnUsers {
		where += " AND idempotency_key LIKE ?"
		args = append(args, scope.KeyPrefix+"%") // the name of a run has no wildcards
	}
	return where, args
}

// uuid writes 32 hexadecimal digits in the usual form.
func uuid(hex string) string {
	if len(hex) != 32 {
		return hex
	}
	return hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:]
}

// CreateUsers gives every user an account with a balance, as a deployment that is
// driven without its admin listener needs.
func CreateUsers(ctx context.Context, db *Database, users []string, balance int64) error {
	amount, at := any(decimal.Text(balance)), any(time.Now().UTC().Format("2006-01-02 15:04:05.000"))
	insert := "INSERT IGNORE INTO users (user_id, balance, credited, created_at) VALUES "
	if db.embedded {
		amount, at = balance, time.Now().UnixMilli()
		insert = "INSERT OR IGNORE INTO users (user_id, balance, credited, created_at) VALUES "
	}
	for some := range slices.Chunk(users, usersPerQuery) {
		args := make([]any, 0, 4*len(some))
		for _, u := range some {
			args = append(args, u, amount, amount, at) // all that was credited is what an audit starts from
		}
		if _, err := db.ExecContext(ctx, insert+strings.TrimSuffix(strings.Repeat("(?,?,?,?),", len(some)), ","), args...); err != nil {
			return fmt.Errorf("create the users: %w", err)
		}
	}
	return nil
}
