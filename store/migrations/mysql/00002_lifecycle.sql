-- +goose Up

CREATE TABLE IF NOT EXISTS order_events (
  event_id           BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  order_id           BINARY(16) NOT NULL,
  event              VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  effect             VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  refund_owed        BOOLEAN NOT NULL,
  amount             DECIMAL(12,2) NULL,
  provider_reference VARCHAR(128) NULL,
  claimed_reference  VARCHAR(128) NULL COMMENT 'the reference, if this event took effect: one payment has one effect',
  created_at         DATETIME(3) NOT NULL,
  PRIMARY KEY (event_id),
  KEY idx_events_order (order_id),
  UNIQUE KEY uk_events_claimed (claimed_reference),
  CONSTRAINT fk_events_order FOREIGN KEY (order_id) REFERENCES orders (order_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS consumed_messages (
  consumer    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  message_id  VARCHAR(255) NOT NULL,
  digest      BINARY(32) NOT NULL,
  order_id    BINARY(16) NOT NULL,
  effect      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  refund_owed BOOLEAN NOT NULL,
  created_at  DATETIME(3) NOT NULL,
  PRIMARY KEY (consumer, message_id),
  KEY idx_consumed_created (created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Messages whose id had been used for another content.
CREATE TABLE IF NOT EXISTS parked_messages (
  consumer   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  message_id VARCHAR(255) NOT NULL,
  digest     BINARY(32) NOT NULL,
  body       MEDIUMBLOB NOT NULL,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (consumer, message_id, digest)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE parked_messages;
DROP TABLE consumed_messages;
DROP TABLE order_events;
