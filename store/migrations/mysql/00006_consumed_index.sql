-- +goose Up

-- Nothing reads it: what was consumed is kept for ever.
ALTER TABLE consumed_messages DROP KEY idx_consumed_created;

-- +goose Down
ALTER TABLE consumed_messages ADD KEY idx_consumed_created (created_at);
