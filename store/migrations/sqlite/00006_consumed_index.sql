-- +goose Up

-- Nothing reads it: what was consumed is kept for ever.
DROP INDEX idx_consumed_created;

-- +goose Down
CREATE INDEX idx_consumed_created ON consumed_messages (created_at);
