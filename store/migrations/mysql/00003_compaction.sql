-- +goose Up

-- How far compaction is done, so that it never reads old records twice.
CREATE TABLE IF NOT EXISTS compaction (
  name       VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  done_until DATETIME(3) NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE compaction;
