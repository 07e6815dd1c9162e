-- +goose Up

-- Every key and number is compared byte for byte: a collation that ignores case
-- or accents would answer one customer's order with another's.
CREATE TABLE IF NOT EXISTS users (
  user_id    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  balance    DECIMAL(14,2) NOT NULL,
  credited   DECIMAL(18,2) NOT NULL COMMENT 'all that was ever credited: balance plus the orders that hold',
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (user_id),
  CONSTRAINT ck_users_balance CHECK (balance >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS stock (
  sku       VARCHAR(64) NOT NULL,
  available BIGINT NOT NULL,
  supplied  BIGINT NOT NULL COMMENT 'all that was ever supplied: available plus what orders have taken',
  PRIMARY KEY (sku),
  CONSTRAINT ck_stock_available CHECK (available >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- uk_orders_key is the last line of defence against a second order. It stays
-- for as long as the order, whatever becomes of idempotency_records.
CREATE TABLE IF NOT EXISTS orders (
  order_id          BINARY(16) NOT NULL COMMENT 'UUIDv7',
  user_id           VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  idempotency_key   VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'NULL: made without a key',
  line_no           SMALLINT UNSIGNED NOT NULL COMMENT 'row within its request, from 0',
  external_order_no VARCHAR(64) NULL,
  sku               VARCHAR(64) NOT NULL,
  quantity          INT UNSIGNED NOT NULL,
  amount            DECIMAL(12,2) NOT NULL,
  stock_taken       BOOLEAN NOT NULL COMMENT 'whether the SKU was limited: a cancellation gives back what was taken',
  status            ENUM('PENDING','PAID','SHIPPED','CANCELLED') NOT NULL,
  created_at        DATETIME(3) NOT NULL,
  updated_at        DATETIME(3) NOT NULL,
  PRIMARY KEY (order_id),
  UNIQUE KEY uk_orders_key (user_id, idempotency_key, line_no),
  UNIQUE KEY uk_orders_number (user_id, external_order_no),
  KEY idx_orders_user (user_id, order_id),
  CONSTRAINT fk_orders_user FOREIGN KEY (user_id) REFERENCES users (user_id) ON UPDATE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The answer is kept as bytes: the JSON type would give it back reordered.
CREATE TABLE IF NOT EXISTS idempotency_records (
  user_id           VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  idempotency_key   VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  operation         VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  request_digest    BINARY(32) NOT NULL,
  status            TINYINT UNSIGNED NOT NULL COMMENT '1 processing, 2 succeeded, 3 failed',
  order_id          BINARY(16) NULL COMMENT 'the first order of the request; NULL when it was refused',
  response_status   SMALLINT UNSIGNED NOT NULL,
  response_type     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  response_location VARCHAR(1024) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  response_body     MEDIUMBLOB NULL COMMENT 'NULL once compacted',
  created_at        DATETIME(3) NOT NULL,
  PRIMARY KEY (user_id, idempotency_key),
  KEY idx_records_created (created_at),
  KEY idx_records_order (order_id),
  CONSTRAINT fk_records_user FOREIGN KEY (user_id) REFERENCES users (user_id) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT fk_records_order FOREIGN KEY (order_id) REFERENCES orders (order_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE idempotency_records;
DROP TABLE orders;
DROP TABLE stock;
DROP TABLE users;
