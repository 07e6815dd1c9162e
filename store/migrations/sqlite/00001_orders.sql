-- +goose Up

-- Amounts are whole hundredths and times whole milliseconds since 1970 (UTC):
-- SQLite has neither exact decimals nor times.
CREATE TABLE server (identity TEXT NOT NULL) STRICT;
INSERT INTO server (identity) VALUES (lower(hex(randomblob(16))));

CREATE TABLE users (
  user_id    TEXT NOT NULL PRIMARY KEY,
  balance    INTEGER NOT NULL CHECK (balance >= 0),
  credited   INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE stock (
  sku       TEXT NOT NULL PRIMARY KEY,
  available INTEGER NOT NULL CHECK (available >= 0),
  supplied  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE orders (
  order_id          BLOB NOT NULL PRIMARY KEY,
  user_id           TEXT NOT NULL REFERENCES users (user_id) ON UPDATE CASCADE,
  idempotency_key   TEXT NULL,
  line_no           INTEGER NOT NULL,
  external_order_no TEXT NULL,
  sku               TEXT NOT NULL,
  quantity          INTEGER NOT NULL,
  amount            INTEGER NOT NULL,
  stock_taken       INTEGER NOT NULL,
  status            TEXT NOT NULL CHECK (status IN ('PENDING', 'PAID', 'SHIPPED', 'CANCELLED')),
  created_at        INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX uk_orders_key ON orders (user_id, idempotency_key, line_no);
CREATE UNIQUE INDEX uk_orders_number ON orders (user_id, external_order_no);
CREATE INDEX idx_orders_user ON orders (user_id, order_id);

CREATE TABLE idempotency_records (
  user_id           TEXT NOT NULL REFERENCES users (user_id) ON DELETE CASCADE ON UPDATE CASCADE,
  idempotency_key   TEXT NOT NULL,
  operation         TEXT NOT NULL,
  request_digest    BLOB NOT NULL,
  status            INTEGER NOT NULL,
  order_id          BLOB NULL REFERENCES orders (order_id),
  response_status   INTEGER NOT NULL,
  response_type     TEXT NOT NULL,
  response_location TEXT NOT NULL,
  response_body     BLOB NULL,
  created_at        INTEGER NOT NULL,
  PRIMARY KEY (user_id, idempotency_key)
) STRICT;
CREATE INDEX idx_records_created ON idempotency_records (created_at);
CREATE INDEX idx_records_order ON idempotency_records (order_id);

-- +goose Down
DROP TABLE idempotency_records;
DROP TABLE orders;
DROP TABLE stock;
DROP TABLE users;
DROP TABLE server;
