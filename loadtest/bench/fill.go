//go:build unix

package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// fill puts records of earlier orders into a database, as fast as MySQL takes
// them: sorted by the primary key, with the other indexes built afterwards, and
// without a log. It says how large an order is on disk.
//
// The indexes come back with the free space that random insertions leave in
// them, since packed ones would split at the first new orders.
func (s *stage) fill(ctx context.Context, database string, records int64, users int) (note string, err error) {
	begin := time.Now()
	s.say("  filling %s with %s records", database, grouped(records))
	connector, err := s.connector(database, nil)
	if err != nil {
		return "", err
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx) // the settings are the session's
	if err != nil {
		return "", fmt.Errorf("fill: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	f := &filler{conn: conn, database: database, past: newPast(records, users, begin), say: s.say}
	if err := f.run(ctx); err != nil {
		return "", fmt.Errorf("fill: %w", err)
	}
	size, err := f.size(ctx)
	if err != nil {
		return "", fmt.Errorf("fill: %w", err)
	}
	s.say("  filled in %v", time.Since(begin).Round(time.Second))
	return fmt.Sprintf("an order takes %s bytes on disk, indexes and its record included (%s orders measured)",
		grouped(size/records), grouped(records)), nil
}

// payForAll takes what was ordered from the balances, as an audit expects it.
const payForAll = "UPDATE users JOIN (SELECT user_id, SUM(amount) AS spent FROM orders GROUP BY user_id) AS o USING (user_id)" +
	" SET balance = balance - spent"

// filler fills one database.
type filler struct {
	conn     *sql.Conn
	database string
	past     *past
	say      func(format string, args ...any)
}

func (f *filler) run(ctx context.Context) error {
	err := f.all(ctx,
		"SET SESSION sql_log_bin = 0, SESSION unique_checks = 0, SESSION foreign_key_checks = 0",
		"SET SESSION innodb_ddl_buffer_size = 268435456",
		"SET GLOBAL local_infile = ON, GLOBAL innodb_fill_factor = 70",
		"ALTER INSTANCE DISABLE INNODB REDO_LOG",
	)
	if err == nil {
		// The larger one first: while it is rebuilt there are two of it.
		err = f.table(ctx, "idempotency_records", f.past.records(), recordsLoad, true)
	}
	if err == nil {
		err = f.table(ctx, "orders", f.past.orders(), ordersLoad, false)
	}
	if err == nil {
		err = f.all(ctx, payForAll)
	}
	if err == nil {
		err = f.settle(ctx)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(err, f.all(end,
		"ALTER INSTANCE ENABLE INNODB REDO_LOG",
		"SET GLOBAL local_infile = OFF, GLOBAL innodb_fill_factor = DEFAULT",
	))
}

func (f *filler) all(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := f.conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.60s: %w", statement, err)
		}
	}
	return nil
}

// table loads a table without its secondary indexes and then gives them back.
// Whatever indexes the schema has are read from it. Rebuild also loosens the
// pages of the primary key, where that is not in the order of insertion.
func (f *filler) table(ctx context.Context, name string, rows rowSource, load string, rebuild bool) error {
	var text string
	if err := f.conn.QueryRowContext(ctx, "SHOW CREATE TABLE "+name).Scan(new(string), &text); err != nil {
		return fmt.Errorf("read the definition of %s: %w", name, err)
	}
	begin := time.Now()
	x := parseIndexes(text)
	if err := f.all(ctx, x.drop(name)...); err != nil {
		return err
	}
	if err := f.load(ctx, load, rows); err != nil {
		return fmt.Errorf("load %s: %w", name, err)
	}
	f.say("    %s: rows after %v", name, time.Since(begin).Round(time.Second))
	if err := f.all(ctx, append(x.add(name, rebuild), "ANALYZE TABLE "+name)...); err != nil {
		return err
	}
	f.say("    %s: indexes after %v", name, time.Since(begin).Round(time.Second))
	return nil
}

// settle waits until what was loaded is on disk, so that the writing does not go
// on while orders are measured.
func (f *filler) settle(ctx context.Context) error {
	if err := f.all(ctx, "SET GLOBAL innodb_max_dirty_pages_pct = 0"); err != nil {
		return err
	}
	const few, patience = 500, 10 * time.Minute
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		var dirty int64
		if err := f.conn.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'").Scan(new(string), &dirty); err != nil {
			return fmt.Errorf("ask for dirty pages: %w", err)
		}
		if dirty < few {
			return f.all(ctx, "SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT")
		}
		select {
		case <-ticker.C:
		case <-waiting.Done():
			return fmt.Errorf("%d pages are still not on disk: %w", dirty, waiting.Err())
		}
	}
}

// size is that of both tables on disk.
func (f *filler) size(ctx context.Context) (bytes int64, err error) {
	for _, table := range []string{"orders", "idempotency_records"} {
		var n int64
		err := f.conn.QueryRowContext(ctx, "SELECT FILE_SIZE FROM information_schema.INNODB_TABLESPACES WHERE NAME = ?",
			f.database+"/"+table).Scan(&n)
		if err != nil {
			return 0, fmt.Errorf("ask for the size of %s: %w", table, err)
		}
		bytes += n
	}
	return bytes, nil
}
