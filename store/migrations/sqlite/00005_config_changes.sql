-- +goose Up

-- Which setting was changed while the gateways ran, from what to what, why, by
-- whom and when. Append-only: the newest row of a name is what is in force.
CREATE TABLE config_changes (
  version      INTEGER NOT NULL PRIMARY KEY,
  change_id    BLOB NOT NULL,
  name         TEXT NOT NULL,
  value        TEXT NULL,
  value_before TEXT NOT NULL,
  value_after  TEXT NOT NULL,
  reason       TEXT NOT NULL,
  changed_by   TEXT NOT NULL,
  changed_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX idx_config_changes_name ON config_changes (name, version);

-- +goose Down
DROP TABLE config_changes;
