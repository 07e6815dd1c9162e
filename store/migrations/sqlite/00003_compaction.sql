-- +goose Up

-- How far compaction is done, so that it never reads old records twice.
CREATE TABLE compaction (
  name       TEXT NOT NULL PRIMARY KEY,
  done_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE compaction;
