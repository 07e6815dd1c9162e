-- +goose Up

-- Accepted requests that wait to be carried out. The row goes in the very
-- transaction that turns its record from processing into an answer.
CREATE TABLE deferred_requests (
  user_id         TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  content         BLOB NOT NULL,
  attempts        INTEGER NOT NULL,
  lease_until     INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  PRIMARY KEY (user_id, idempotency_key),
  FOREIGN KEY (user_id, idempotency_key)
    REFERENCES idempotency_records (user_id, idempotency_key) ON DELETE CASCADE ON UPDATE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_deferred_lease ON deferred_requests (lease_until);

-- +goose Down
DROP TABLE deferred_requests;
