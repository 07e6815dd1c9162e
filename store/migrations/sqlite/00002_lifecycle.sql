-- +goose Up

CREATE TABLE order_events (
  event_id           INTEGER PRIMARY KEY AUTOINCREMENT,
  order_id           BLOB NOT NULL REFERENCES orders (order_id),
  event              TEXT NOT NULL,
  effect             TEXT NOT NULL,
  refund_owed        INTEGER NOT NULL,
  amount             INTEGER NULL,
  provider_reference TEXT NULL,
  claimed_reference  TEXT NULL,
  created_at         INTEGER NOT NULL
) STRICT;
CREATE INDEX idx_events_order ON order_events (order_id);
CREATE UNIQUE INDEX uk_events_claimed ON order_events (claimed_reference);

CREATE TABLE consumed_messages (
  consumer    TEXT NOT NULL,
  message_id  TEXT NOT NULL,
  digest      BLOB NOT NULL,
  order_id    BLOB NOT NULL,
  effect      TEXT NOT NULL,
  refund_owed INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  PRIMARY KEY (consumer, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_consumed_created ON consumed_messages (created_at);

-- Messages whose id had been used for another content.
CREATE TABLE parked_messages (
  consumer   TEXT NOT NULL,
  message_id TEXT NOT NULL,
  digest     BLOB NOT NULL,
  body       BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, message_id, digest)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE parked_messages;
DROP TABLE consumed_messages;
DROP TABLE order_events;
