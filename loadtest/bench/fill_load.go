//go:build unix

package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-sql-driver/mysql"
)

const (
	ordersLoad = "INTO TABLE orders CHARACTER SET ascii (@id, user_id, idempotency_key, sku, quantity, amount, created_at)" +
		" SET order_id = UNHEX(@id), line_no = 0, stock_taken = FALSE, status = 'PENDING', updated_at = created_at"
	recordsLoad = "INTO TABLE idempotency_records CHARACTER SET ascii" +
		" (user_id, idempotency_key, @digest, @id, response_location, response_body, created_at)" +
		" SET operation = 'orders.create', request_digest = UNHEX(@digest), status = 2, order_id = UNHEX(@id)," +
		" response_status = 201, response_type = 'application/json'"
)

// perLoad is the rows of one LOAD DATA, which is one transaction.
const perLoad = 200_000

// rowSource appends the next row as a line of values between tabs; false at the end.
type rowSource func(b []byte) ([]byte, bool)

// load streams rows into a table.
func (f *filler) load(ctx context.Context, into string, rows rowSource) error {
	name := f.database // one load at a time in a database
	for more := true; more; {
		source := &chunk{rows: rows, left: perLoad}
		mysql.RegisterReaderHandler(name, func() io.Reader { return source })
		_, err := f.conn.ExecContext(ctx, "LOAD DATA LOCAL INFILE 'Reader::"+name+"' "+into)
		mysql.DeregisterReaderHandler(name)
		if err != nil {
			return err
		}
		if err := f.warnings(ctx); err != nil {
			return err
		}
		more = !source.ended
	}
	return nil
}

// warnings makes an error of what LOAD DATA LOCAL only warns of: it passes over
// rows that it cannot use.
func (f *filler) warnings(ctx context.Context) error {
	var level, text string
	var code int
	rows, err := f.conn.QueryContext(ctx, "SHOW WARNINGS LIMIT 1")
	if err != nil {
		return fmt.Errorf("ask for warnings: %w", err)
	}
	defer func() { _ = rows.Close() }() // its error is rows.Err
	for rows.Next() {
		if err := rows.Scan(&level, &code, &text); err != nil {
			return fmt.Errorf("ask for warnings: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("ask for warnings: %w", err)
	}
	if text != "" {
		return errors.New(text)
	}
	return nil
}

// chunk reads a bounded number of rows.
type chunk struct {
	rows   rowSource
	left   int
	ended  bool
	line   []byte
	unread []byte
}

// Read implements [io.Reader].
func (c *chunk) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if len(c.unread) == 0 && !c.next() {
			break
		}
		m := copy(b[n:], c.unread)
		n, c.unread = n+m, c.unread[m:]
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (c *chunk) next() bool {
	if c.left == 0 || c.ended {
		return false
	}
	c.left--
	line, ok := c.rows(c.line[:0])
	c.ended = !ok
	c.line, c.unread = line, line
	return ok
}

// indexes are the secondary indexes and the foreign keys of a table, as SHOW
// CREATE TABLE writes them.
type indexes struct{ keys, references []string }

func parseIndexes(create string) indexes {
	var x indexes
	for s := bufio.NewScanner(strings.NewReader(create)); s.Scan(); {
		line := strings.TrimSuffix(strings.TrimSpace(s.Text()), ",")
		switch {
		case strings.HasPrefix(line, "KEY "), strings.HasPrefix(line, "UNIQUE KEY "):
			x.keys = append(x.keys, line)
		case strings.HasPrefix(line, "CONSTRAINT ") && strings.Contains(line, " FOREIGN KEY "):
			x.references = append(x.references, line)
		}
	}
	return x
}

// drop drops them: first what needs an index, then the indexes.
func (x indexes) drop(table string) []string {
	change := func(what string, lines []string) (list []string) {
		for _, line := range lines {
			list = append(list, what+quotedName(line))
		}
		return list
	}
	return alter(table, change("DROP FOREIGN KEY ", x.references), change("DROP KEY ", x.keys))
}

// add puts them back.
func (x indexes) add(table string, rebuild bool) []string {
	change := func(lines []string) (list []string) {
		for _, line := range lines {
			list = append(list, "ADD "+line)
		}
		return list
	}
	keys := change(x.keys)
	if rebuild {
		keys = append(keys, "FORCE")
	}
	return alter(table, keys, change(x.references))
}

// alter makes one statement of each list that is not empty.
func alter(table string, lists ...[]string) (statements []string) {
	for _, list := range lists {
		if len(list) > 0 {
			statements = append(statements, "ALTER TABLE "+table+" "+strings.Join(list, ", "))
		}
	}
	return statements
}

// quotedName is the first name in backquotes, quotes included.
func quotedName(line string) string {
	_, rest, _ := strings.Cut(line, "`")
	name, _, _ := strings.Cut(rest, "`")
	return "`" + name + "`"
}
