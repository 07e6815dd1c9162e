//go:build unix

package bench

import (
	"database/sql"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// The columns that the harness writes, with indexes of every kind.
const smallSchema = `
CREATE TABLE users (user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, balance DECIMAL(14,2) NOT NULL,
  credited DECIMAL(18,2) NOT NULL, created_at DATETIME(3) NOT NULL);
CREATE TABLE orders (order_id BINARY(16) PRIMARY KEY, user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  idempotency_key VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin, line_no SMALLINT UNSIGNED NOT NULL,
  sku VARCHAR(64) NOT NULL, quantity INT NOT NULL, amount DECIMAL(12,2) NOT NULL, stock_taken BOOLEAN NOT NULL,
  status ENUM('PENDING','PAID') NOT NULL, created_at DATETIME(3) NOT NULL, updated_at DATETIME(3) NOT NULL,
  UNIQUE KEY uk_key (user_id, idempotency_key, line_no), KEY idx_user (user_id, order_id),
  CONSTRAINT fk_user FOREIGN KEY (user_id) REFERENCES users (user_id) ON UPDATE CASCADE);
CREATE TABLE idempotency_records (user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  idempotency_key VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, operation VARCHAR(32) NOT NULL,
  request_digest BINARY(32) NOT NULL, status TINYINT NOT NULL, order_id BINARY(16), response_status SMALLINT NOT NULL,
  response_type VARCHAR(64) NOT NULL, response_location VARCHAR(1024) NOT NULL, response_body MEDIUMBLOB, created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (user_id, idempotency_key), KEY idx_created (created_at),
  CONSTRAINT fk_records_user FOREIGN KEY (user_id) REFERENCES users (user_id) ON DELETE CASCADE,
  CONSTRAINT fk_order FOREIGN KEY (order_id) REFERENCES orders (order_id));
CREATE TABLE deferred (user_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  idempotency_key VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, PRIMARY KEY (user_id, idempotency_key),
  CONSTRAINT fk_deferred FOREIGN KEY (user_id, idempotency_key) REFERENCES idempotency_records (user_id, idempotency_key))`

func one[T any](t *testing.T, db *sql.DB, query string) (value T) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&value))
	return value
}

func definition(t *testing.T, db *sql.DB, table string) (text string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), "SHOW CREATE TABLE "+table).Scan(new(string), &text))
	return text
}

func TestFilledTablesAreWholeAndKeepTheirIndexes(t *testing.T) {
	t.Parallel()
	server := testserver.StartMySQL(t) // its log is switched off for a while
	c := Config{MySQL: server.RootDSN, Progress: io.Discard}
	s, err := newStage(&c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	ctx := t.Context()
	_, err = s.admin.ExecContext(ctx, "CREATE DATABASE filled")
	require.NoError(t, err)
	connector, err := s.connector("filled", nil)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for statement := range strings.SplitSeq(smallSchema, ";") {
		_, err := db.ExecContext(ctx, statement)
		require.NoError(t, err)
	}
	require.NoError(t, insertUsers(ctx, db, s.users[:100]))
	before := definition(t, db, "orders") + definition(t, db, "idempotency_records")

	note, err := s.fill(ctx, "filled", 5000, 100)
	require.NoError(t, err)
	require.Contains(t, note, "5,000 orders measured")
	require.Equal(t, before, definition(t, db, "orders")+definition(t, db, "idempotency_records"))
	require.Equal(t, 5000, one[int](t, db, "SELECT COUNT(*) FROM idempotency_records JOIN orders USING (order_id, user_id, idempotency_key)"))
	require.Equal(t, 100, one[int](t, db, "SELECT COUNT(DISTINCT user_id) FROM orders"))
	require.Zero(t, one[int](t, db, "SELECT COUNT(*) FROM users WHERE balance <> credited - 50 * 39.80"))
	var log string
	require.NoError(t, db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'innodb_redo_log_enabled'").Scan(new(string), &log))
	require.Equal(t, "ON", log)
	for name, want := range map[string]string{"local_infile": "OFF", "innodb_fill_factor": "100"} {
		got, err := variable(ctx, db, name)
		require.NoError(t, err)
		require.Equal(t, want, got, name)
	}
}
