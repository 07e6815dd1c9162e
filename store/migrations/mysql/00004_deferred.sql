-- +goose Up

-- Accepted requests that wait to be carried out. The row goes in the very
-- transaction that turns its record from processing into an answer.
CREATE TABLE IF NOT EXISTS deferred_requests (
  user_id         VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  idempotency_key VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  content         MEDIUMBLOB NOT NULL,
  attempts        INT UNSIGNED NOT NULL,
  lease_until     DATETIME(3) NOT NULL COMMENT 'who works on it has until then',
  created_at      DATETIME(3) NOT NULL,
  PRIMARY KEY (user_id, idempotency_key),
  KEY idx_deferred_lease (lease_until),
  CONSTRAINT fk_deferred_record FOREIGN KEY (user_id, idempotency_key)
    REFERENCES idempotency_records (user_id, idempotency_key) ON DELETE CASCADE ON UPDATE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE deferred_requests;
