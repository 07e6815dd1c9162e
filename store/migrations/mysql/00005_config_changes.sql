-- +goose Up

-- Which setting was changed while the gateways ran, from what to what, why, by
-- whom and when. Append-only: the newest row of a name is what is in force.
CREATE TABLE IF NOT EXISTS config_changes (
  version      BIGINT UNSIGNED NOT NULL COMMENT 'without gaps: two changes of one version cannot both be recorded',
  change_id    BINARY(16) NOT NULL COMMENT 'made by the gateway: tells its own row after an unknown commit',
  name         VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  value        VARCHAR(255) NULL COMMENT 'NULL: back to what the configuration says',
  value_before VARCHAR(255) NOT NULL,
  value_after  VARCHAR(255) NOT NULL,
  reason       VARCHAR(500) NOT NULL,
  changed_by   VARCHAR(255) NOT NULL,
  changed_at   DATETIME(3) NOT NULL,
  PRIMARY KEY (version),
  KEY idx_config_changes_name (name, version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE config_changes;
